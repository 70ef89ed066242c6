"""Sessions: the handshake-era clients of an endpoint, bounded in number and in idle time."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Iterator
from time import monotonic

from ..connection import Connection
from ..limits import Limits
from .accounts import Accounts
from .events import EventStream
from .message import Request
from .rejection import Rejection

GENERAL = "general"
_NUMBER = re.compile("[0-9]{1,12}")
_MAX_ENDED_STREAMS = 32
"""Finished streams kept for each session, so that a client can still fetch an answer it missed."""


class Session:
    """One client: its connection and its event streams."""

    def __init__(
        self,
        session_id: str,
        limits: Limits,
        accounts: Accounts,
        request: Request,
        close: Callable[[Session], None],
    ) -> None:
        self.id = session_id
        self.connection = Connection(limits, request.principal, request.caller)
        self.caller = request.caller
        self._owner = (request.principal, request.token_id)
        self._accounts = accounts
        self._close = close
        self.general = EventStream(GENERAL, limits, accounts, self.caller)
        """Messages that belong to no request; a GET delivers them."""
        self.streams: dict[str, EventStream] = {GENERAL: self.general}
        self.announcer: asyncio.Task[None] | None = None
        """Feeds changes into the general stream while a GET delivers it."""
        self.in_use = 0
        """Requests and streams under way; above 0 the session is not idle."""
        self.idle_since = monotonic()
        self._limits = limits
        self._last_stream = 0

    def open_stream(self) -> EventStream:
        """Open the stream of one request and drop the oldest ended ones."""
        ended = [stream for stream in self.streams.values() if stream.has_ended]
        for stream in ended[: max(0, len(ended) - _MAX_ENDED_STREAMS)]:
            self._forget(stream)
        self._last_stream += 1
        name = str(self._last_stream)
        opened = self.streams[name] = EventStream(name, self._limits, self._accounts, self.caller)
        return opened

    def forget_ended(self, before: float) -> None:
        """Forget the streams that ended before a time of the monotonic clock, unless one is being read."""
        for stream in tuple(self.streams.values()):
            if stream.has_ended and stream.ended_at < before and stream.reader is None:
                self._forget(stream)

    def _forget(self, stream: EventStream) -> None:
        del self.streams[stream.name]
        stream.drop()

    def close(self) -> None:
        """End the session and everything done for it."""
        self._close(self)

    def belongs_to(self, request: Request) -> bool:
        """Whether a request has the principal and token that opened the session."""
        return self._owner == (request.principal, request.token_id)

    def release(self) -> None:
        """End the use by one request or stream; the idle time restarts."""
        self.in_use -= 1
        self.idle_since = monotonic()

    def position(self, last_event_id: str) -> tuple[EventStream, int]:
        """Return the stream of a Last-Event-ID and the position in it."""
        name, _, number = last_event_id.rpartition("/")
        stream = self.streams.get(name)
        if stream is None or _NUMBER.fullmatch(number) is None or int(number) > stream.last_number:
            raise Rejection(400, f"Event {last_event_id!r} is unknown or has expired")
        return stream, int(number)


class Sessions:
    """The sessions of one endpoint."""

    def __init__(
        self, limits: Limits, accounts: Accounts, ended: Callable[[Session], None], prefix: str = ""
    ) -> None:
        self._limits = limits
        self._accounts = accounts
        self._prefix = prefix
        """Start of every session id; with several processes it names the one that owns the session."""
        self._ended = ended
        self._sessions: dict[str, Session] = {}
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._sessions.values()))

    def open(self, request: Request) -> Session:
        """Open a session. Raises Rejection at the limit."""
        self._sweep_idle()
        name = self._prefix + secrets.token_urlsafe(24)
        session = Session(name, self._limits, self._accounts, request, self.close)
        self._accounts.open_session(session)
        self._sessions[session.id] = session
        return session

    def find(self, request: Request) -> Session:
        """Return the session of a request; that of another principal or token is reported as unknown."""
        session_id = request.headers.get(b"mcp-session-id")
        if session_id is None:
            raise Rejection(
                400, "Mcp-Session-Id is missing: send initialize first and use the id it answers with"
            )
        session = self._sessions.get(session_id.decode("latin-1"))
        if session is None or not session.belongs_to(request):
            raise Rejection(404, "The session is unknown or has expired: start again with initialize")
        session.idle_since = monotonic()
        return session

    def close(self, session: Session) -> None:
        """End a session and everything done for it."""
        self._sessions.pop(session.id, None)
        self._accounts.close_session(session)
        for stream in session.streams.values():
            stream.end()
            stream.drop()
        self._ended(session)

    def end_general_streams(self) -> None:
        """End the stream of every GET; requests go on."""
        for session in self._sessions.values():
            session.general.end()

    def close_all(self) -> None:
        """End every session."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for session in tuple(self._sessions.values()):
            self.close(session)

    def _sweep_idle(self) -> None:
        """Close idle sessions and forget old streams, now and again later while any session is open."""
        loop, now, limits = asyncio.get_running_loop(), monotonic(), self._limits
        for session in tuple(self._sessions.values()):
            if not session.in_use and session.idle_since < now - limits.session_idle_seconds:
                self.close(session)
            else:
                session.forget_ended(now - limits.resume_seconds)
        if self._sweep is not None:
            self._sweep.cancel()
        pause = max(1.0, min(limits.session_idle_seconds, limits.resume_seconds) / 4)
        self._sweep = loop.call_later(pause, self._sweep_again)

    def _sweep_again(self) -> None:
        self._sweep = None
        if self._sessions:
            self._sweep_idle()
