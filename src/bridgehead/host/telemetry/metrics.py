"""Metrics: the host's metrics of requests, callers and tool calls.

Names begin with `bridgehead_`, except the `process_*` names common to all Prometheus clients, and
`tool_calls_total` and `tool_errors_total`, which a contract fixes for the tools of every bridge.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridgehead import __version__
from bridgehead.mcp import Bridge, CallHook, Invocation, Outcome, Tasks, current_worker, observe_calls
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.memory import resident_bytes
from bridgehead.runtime import callers, events, logs
from bridgehead.runtime.metrics import Metrics

from .tracing import current_span

_DESCRIPTORS = Path("/proc/self/fd")

_MAX_CLIENTS = 1000
"""Clients with a counter of their own; further ones are counted together as OTHERS."""
_MAX_SHOWN = 100
"""How many callers a gauge lists, busiest first."""
OTHERS = "(others)"
OWN = "(the host)"
"""Blocking work of the host and the bridges themselves."""
CALLS = "tool_calls_total"
_MAX_CONTENT = 10_000
"""Characters of a call's arguments in its event."""
# Made once, so that counting a request formats no number.
_STATUS = {status: str(status) for status in range(100, 600)}


class HostMetrics:
    """The metrics of the host itself; each bridge has its own."""

    def __init__(self, accounts: Accounts) -> None:
        self.metrics = Metrics()
        self.in_flight = 0
        """Requests whose response is not ready at once."""
        self.connections: Counter[str] = Counter()
        """Open connections by remote address; the server keeps the count."""
        metrics = self.metrics
        self._requests = metrics.counter(
            "bridgehead_http_requests_total", "HTTP requests that were answered.", "route", "status"
        )
        self._seconds = metrics.histogram(
            "bridgehead_http_request_seconds", "How long an HTTP request took, streams apart.", "route"
        )
        self._stream_seconds = metrics.histogram(
            "bridgehead_http_stream_seconds", "How long a response took that was a stream.", "route"
        )
        self._errors = metrics.counter(
            "bridgehead_protocol_errors_total",
            "Requests answered with an error of the protocol: unknown tools, bad arguments and the like.",
            "method",
            "code",
        )
        self._clients = metrics.counter(
            "bridgehead_client_requests_total", "Requests by the name of the caller.", "client"
        )

        self.rejections = metrics.counter(
            "bridgehead_refusals_total",
            "Requests and connections that were rejected before a bridge saw them.",
            "reason",
        )
        self.auth_failures = metrics.counter(
            "bridgehead_auth_failures_total", "Requests without a valid token.", "reason"
        )
        self.blocked = metrics.counter(
            "bridgehead_loop_blocked_total",
            "Times that the event loop was blocked, by the tool that blocked it.",
            "tool",
        )

        show_process(metrics)
        metrics.gauge(
            "bridgehead_http_in_flight", "HTTP requests in progress.", lambda: {(): float(self.in_flight)}
        )
        metrics.gauge(
            "bridgehead_connections",
            "Connections that are open.",
            lambda: {(): float(self.connections.total())},
        )
        metrics.gauge(
            "bridgehead_sessions", "Sessions that are open.", lambda: {(): float(accounts.sessions.total)}
        )
        metrics.gauge(
            "bridgehead_streams", "Streams that are open.", lambda: {(): float(accounts.streams.total)}
        )
        shares = {
            "requests": accounts.requests,
            "sessions": accounts.sessions,
            "streams": accounts.streams,
            "bytes": accounts.bytes,
        }
        metrics.gauge(
            "bridgehead_held_bytes",
            "Bytes held for callers: bodies, unread answers, events kept for resuming, tasks, subscriptions.",
            lambda: {(): float(accounts.bytes.total)},
        )
        metrics.total(
            "bridgehead_client_thread_seconds_total",
            "Seconds of work for each caller: CPU time in threads, and long steps of the event loop.",
            lambda: {(name or OWN,): seconds for name, seconds in accounts.work.by_caller.copy().items()},
            "client",
        )

        def read_open() -> dict[tuple[str, ...], float]:
            values: dict[tuple[str, ...], float] = {}
            by_resource = {resource: share.by_caller for resource, share in shares.items()}
            for resource, by_caller in (by_resource | {"connections": self.connections}).items():
                ranked = Counter(by_caller).most_common()
                for client, count in ranked[:_MAX_SHOWN]:
                    values[client, resource] = float(count)
                # The rest as one sum, so that totals are right and the page has a bounded length.
                if others := ranked[_MAX_SHOWN:]:
                    values[OTHERS, resource] = float(sum(count for _, count in others))
            return values

        self.limits: dict[tuple[str, ...], float] = {
            ("client", resource): float(share.limit) for resource, share in shares.items()
        }
        """Limits by scope (`client` or `all`) and resource."""
        about = "Open resources of one caller: a token, or an address (connections, or without tokens)."
        metrics.gauge("bridgehead_client_open", about, read_open, "client", "what")
        metrics.gauge(
            "bridgehead_limit",
            "The limit of open resources, for one caller (client) or for all.",
            lambda: dict(self.limits),
            "scope",
            "what",
        )

    def show_tasks(self, tasks: Tasks) -> None:
        """Declare the tasks of this process: how many run, and how many have ended."""
        self.metrics.gauge(
            "bridgehead_tasks",
            "Tasks that run in this process, by status.",
            lambda: {(status,): float(count) for status, count in tasks.count_running().items()},
            "status",
        )
        self.metrics.total(
            "bridgehead_tasks_ended_total",
            "Tasks that have ended, by status.",
            lambda: {(status,): float(count) for status, count in tasks.ended.items()},
            "status",
        )

    def show_disk(self, folder: Path) -> None:
        """Declare the room on the disk of the state directory."""
        self.metrics.gauge(
            "bridgehead_disk_free_bytes",
            "Free space on the disk of the state directory.",
            lambda: _measure_disk(folder, "free"),
        )
        self.metrics.gauge(
            "bridgehead_disk_bytes",
            "Size of the disk of the state directory.",
            lambda: _measure_disk(folder, "total"),
        )

    def show_certificate(self, read_expiry: Callable[[], float]) -> None:
        """Declare the time at which the certificate expires, for alerts before it."""
        self.metrics.gauge(
            "bridgehead_tls_certificate_expiry_timestamp_seconds",
            "When the served certificate expires, in seconds since 1970.",
            lambda: {(): read_expiry()},
        )

    def count_error(self, method: str, code: int) -> None:
        """Count a request that was answered with a protocol error."""
        self._errors.add(method, str(code))

    def count_request(
        self, route: str, status: int, seconds: float, client: str | None, *, is_stream: bool = False
    ) -> None:
        """Count a finished request."""
        self._requests.add(route, _STATUS[status])
        (self._stream_seconds if is_stream else self._seconds).observe(seconds, route)
        if client is not None:
            # Bounded: with OAuth the name is the subject of a token, of which an issuer may have many.
            known = self._clients.values
            self._clients.add(client if len(known) < _MAX_CLIENTS or (client,) in known else OTHERS)


NoteFailure = Callable[[str, Invocation, Outcome], None]
"""Called with the bridge for each failed call."""
NoteCall = Callable[[str, Invocation, Outcome, float], None]
"""Called with the bridge and the seconds for each tool call that has ended."""


class CallMetrics:
    """Counts, times, traces, publishes and reports the tool calls of one bridge."""

    def __init__(
        self,
        name: str,
        bridge: Bridge[Any],
        metrics: Metrics,
        *,
        is_traced: bool,
        note_failure: NoteFailure | None = None,
        note_call: NoteCall | None = None,
    ) -> None:
        self._name = name
        self._note_call = note_call
        self._note_failure = note_failure
        self._is_traced = is_traced
        self._in_flight = 0
        # A bridge whose contract has these counters has declared them and counts its calls itself.
        self._counts = not any(metric.name == CALLS for metric in metrics.all)
        if self._counts:
            self._calls = metrics.counter(CALLS, "Calls of a tool.", "tool")
            self._errors = metrics.counter("tool_errors_total", "Calls of a tool that failed.", "tool")
        self._seconds = metrics.histogram(
            "bridgehead_tool_seconds", "How long a tool call took, by how it ended.", "tool", "outcome"
        )
        metrics.gauge(
            "bridgehead_tool_calls_in_flight",
            "Tool calls in progress.",
            lambda: {(): float(self._in_flight)},
        )

    def hook(self) -> CallHook:
        """Return the hook to run around every call of the bridge."""

        def begin(call: Invocation) -> None:
            # From here on, work in threads counts for this bridge and caller.
            current_worker.set((self._name, str(getattr(call.context.outlet, "caller", ""))))
            if call.kind == "tool":
                self._in_flight += 1
                callers.count_charges()

        return observe_calls(self._end, waits=begin)

    def _end(self, call: Invocation, outcome: Outcome, seconds: float) -> None:
        if self._is_traced:
            span = current_span.get()
            if span is not None:
                span.add_call(self._name, call, outcome)
        if call.kind != "tool":
            return
        if outcome.waited:  # only those were counted by `begin`
            self._in_flight -= 1
        if self._counts:
            self._calls.add(call.name)
        if outcome.status == "error":
            if self._counts:
                self._errors.add(call.name)
            if self._note_failure is not None:
                self._note_failure(self._name, call, outcome)
        self._seconds.observe(seconds, call.name, outcome.status)
        if events.feed.has_call_listeners:  # without a listener, a call does not pay for its event
            self._publish(call, outcome, seconds)
        if self._note_call is not None:
            self._note_call(self._name, call, outcome, seconds)

    def _publish(self, call: Invocation, outcome: Outcome, seconds: float) -> None:
        """Publish a finished call as an event; with its arguments only if the settings say so."""
        context, error = call.context, outcome.error
        data: dict[str, object] = {
            "bridge": self._name,
            "tool": call.name,
            "client": context.principal,
            "outcome": outcome.status,
            "seconds": round(seconds, 6),
            **{name: value for name, value in logs.context_fields().items() if name in {"request", "trace"}},
        }
        if outcome.status == "error":
            data["error"] = "tool_error" if error is None else getattr(error, "code", type(error).__name__)
        if events.feed.with_content:
            data["arguments"] = bytes(context.arguments).decode(errors="replace")[:_MAX_CONTENT]
        events.publish("call.failed" if outcome.status == "error" else "call.ended", **data)


def _measure_disk(folder: Path, what: str) -> dict[tuple[str, ...], float]:
    try:
        return {(): float(getattr(shutil.disk_usage(folder), what))}
    except OSError:  # the folder is gone
        return {}


def show_process(metrics: Metrics) -> None:
    """Add the version and the process metrics, under the names that Prometheus clients use."""
    build = (__version__, platform.python_version())
    metrics.gauge("bridgehead_build_info", "What runs.", lambda: {build: 1.0}, "version", "python")
    started = time.time()
    metrics.gauge("process_start_time_seconds", "When it was started.", lambda: {(): started})
    metrics.gauge(
        "bridgehead_clock_timestamp_seconds",
        "The clock of the machine, in seconds since 1970.",
        lambda: {(): time.time()},
    )
    metrics.total("process_cpu_seconds_total", "CPU time it took.", lambda: {(): time.process_time()})
    if hasattr(os, "sysconf") and _DESCRIPTORS.is_dir():
        metrics.gauge(
            "process_open_fds", "Open files.", lambda: {(): float(len(list(_DESCRIPTORS.iterdir())))}
        )
        metrics.gauge(
            "process_resident_memory_bytes", "Memory in use.", lambda: {(): float(resident_bytes())}
        )
