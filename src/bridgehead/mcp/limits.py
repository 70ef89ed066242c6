"""Every bound of the engine, by name.

A limit that is reached gives a clear error, or makes the other side wait; nothing grows without one of these.
"""

from __future__ import annotations

from msgspec import Struct


class Ledger:
    """Bytes kept for callers, and time spent for them.

    This one charges nothing, for transports that serve a single caller.
    """

    def spend(self, caller: str, seconds: float) -> None:
        """Charge time that a step of a caller's work took on the event loop."""

    def hold(self, caller: str, size: int) -> bool:
        """Charge bytes that may be refused; False, and nothing charged, if the caller may not keep more."""
        return True

    def charge(self, caller: str, size: int) -> None:
        """Charge bytes that exist already, such as a result that may be paid for; never refused."""

    def release(self, caller: str, size: int) -> None:
        """Release charged bytes."""


class Limits(Struct, frozen=True, kw_only=True):
    """The engine's limits. Sizes are in bytes, times in seconds."""

    message_bytes: int = 16 * 1024 * 1024
    """One incoming message: a line on stdin, or an HTTP body."""
    requests_in_flight: int = 1024
    """Requests of one connection being served at once; stdio stops reading, HTTP answers 503."""
    client_requests: int = 64
    """Questions to one client (elicitation, sampling, roots) waiting for an answer at once."""
    ask_seconds: float = 600.0
    """How long a question to the client waits for its answer."""
    listen_streams: int = 1024
    """`subscriptions/listen` streams open at once, over all clients."""
    subscriptions: int = 1024
    """Resources that one client may be subscribed to."""
    output_bytes: int = 1024 * 1024
    """Answers that a slow reader has not taken yet; above this no more input is read."""
    shutdown_seconds: float = 5.0
    """How long requests in flight may take to finish when the server ends."""
    request_state_seconds: float = 900.0
    """How long a client may take to answer an `input_required` result."""
    sessions: int = 1000
    """HTTP sessions of the handshake era alive at once."""
    sessions_per_caller: int = 250
    """The same for one caller: a principal, or an address without authentication."""
    streams_per_caller: int = 250
    """GET streams, listen streams and streams of the old SSE transport that one caller may have open."""
    http_requests_per_caller: int = 1000
    """HTTP requests of one caller being served at once: a quarter of all, so that others have room."""
    session_idle_seconds: float = 1800.0
    """An HTTP session without any request or stream for this long is forgotten."""
    http_requests_in_flight: int = 4096
    """HTTP requests being served at once, over all clients of one endpoint."""
    resume_events: int = 256
    """Events kept for one stream, so that a client can resume after a dropped connection."""
    resume_bytes: int = 4 * 1024 * 1024
    """Bytes of events kept for one stream."""
    resume_seconds: float = 60.0
    """How long a dropped stream's work continues, and its events are kept, for its client to reconnect."""
    keep_alive_seconds: float = 15.0
    """A silent event stream gets a comment this often, so that nothing on the way closes it."""
    tasks: int = 10_000
    """Tasks kept at once, running or ended, over all callers."""
    tasks_per_caller: int = 500
    """The same for one caller."""
    task_bytes: int = 128 * 1024 * 1024
    """Bytes of results that are kept for tasks, over all callers: eight as large as a message can be."""
    task_bytes_per_caller: int = 32 * 1024 * 1024
    """The same for one caller, and so the largest result of a task: a quarter, so that others have room."""
    task_seconds: float = 3600.0
    """How long a task is kept from its creation on; work that takes longer is stopped."""
    task_poll_seconds: float = 0.5
    """Poll interval suggested to clients of a task."""
    bytes_per_caller: int = 128 * 1024 * 1024
    """Bytes held for one HTTP caller: bodies, unread answers, events kept for resuming, tasks and so on.

    Eight messages of the largest size, so a caller with a few large calls is not refused."""
    thread_seconds_per_caller: float = 30.0
    """CPU seconds that blocking work of one HTTP caller may take in a minute if others need threads too."""
    memory_bytes: int = 1 << 62
    """Memory of the process; above this, events kept for resuming are dropped, then new work is refused."""
    batch_bytes: int = 16 * 1024 * 1024
    """Answers of one batch; further messages of it are refused."""
    body_seconds: float = 30.0
    """How long an HTTP client may take to send its body."""
