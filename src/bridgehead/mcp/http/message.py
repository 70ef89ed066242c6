"""Messages: one HTTP request, and the response it gets, whichever server carries them.

This is the one entrance of everything that is served here: a `Handler` is a function from a `Request` to a
`Response`, or to a coroutine that gives one. Our own server calls it for every request, `asgi.py` calls it on
behalf of any other server. What can be answered without waiting is, without a task. No I/O here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

HeaderPairs = Sequence[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
NO_CONTENT = 204
BODYLESS = frozenset({NO_CONTENT, 304})
"""Statuses whose responses have neither a body nor a length."""


class Response(NamedTuple):
    """A response that is there in one piece."""

    status: int
    body: bytes = b""
    headers: HeaderPairs = ()

    @classmethod
    def json(cls, body: bytes, status: int = 200, headers: HeaderPairs = ()) -> Response:
        """Make the response that carries JSON."""
        return cls(status, body, (JSON, *headers))


class ResponseStream(ABC):
    """A response that is sent piece by piece; its head has gone out."""

    __slots__ = ("status",)

    def __init__(self, status: int) -> None:
        self.status = status

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Send a piece, waiting while the client is slow to read. Nothing happens once the client is gone."""

    @abstractmethod
    async def close(self) -> None:
        """End the response in good order; a second call does nothing."""


class ClientGone(Exception):
    """The client hung up before it had sent its whole request."""


class Request(ABC):
    """One request. Servers make it; who answers reads it, and may wait for the rest of its body."""

    __slots__ = (
        "_when_gone",
        "address",
        "body",
        "extra_headers",
        "header_pairs",
        "headers",
        "is_complete",
        "is_gone",
        "method",
        "mount",
        "path",
        "principal",
        "query",
        "raw_path",
        "scheme",
        "stream",
        "token_id",
    )

    def __init__(self, method: str, raw_path: bytes, path: str, query: bytes, pairs: HeaderPairs) -> None:
        self.method = method
        self.raw_path = raw_path
        self.path = path
        """The path, with percent signs decoded, below `mount`."""
        self.query = query
        self.header_pairs = pairs
        """The headers as they came, with names in lower case."""
        self.headers: dict[bytes, bytes] = dict(pairs)
        if len(self.headers) != len(pairs):
            self.headers = _join_repeated(pairs)
        self.scheme = "http"
        self.address = ""
        """The address of the peer that sent it."""
        self.mount = ""
        """The path under which the application is mounted, where another one routes to it."""
        self.principal: str | None = None
        """Whose request this is, where somebody in front has found out."""
        self.token_id = ""
        """What tells the principal's token from an earlier one of the same name."""
        self.body: bytes | bytearray = b""
        """What has arrived of the body and was not read yet."""
        self.is_complete = False
        """Whether all of the body has arrived."""
        self.is_gone = False
        """Whether the client has hung up."""
        self.extra_headers: HeaderPairs = ()
        """Headers that its response gets beside its own, whatever response that is."""
        self.stream: ResponseStream | None = None
        """Its response, where that has begun as a stream."""
        self._when_gone: Callable[[], None] | None = None

    def when_gone(self, act: Callable[[], None]) -> None:
        """Call something if the client hangs up before its response is complete; at once if it has."""
        self._when_gone = act
        if self.is_gone:
            act()

    def hang_up(self) -> None:
        """Note that the client is gone."""
        self.is_gone = True
        if self._when_gone is not None:
            self._when_gone()

    def abort(self) -> None:
        """Close the connection after what was sent so far, so that the client sees a response cut short.

        Only for a server that is to misbehave. What the handler returns after this is not sent.
        """
        raise NotImplementedError

    @abstractmethod
    async def read(self) -> bytes:
        """Return the next piece of the body, and nothing after the last. Raises ClientGone."""

    @abstractmethod
    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        """Begin to respond piece by piece. The handler's coroutine gives the stream back when it is done."""


Handled = Response | Coroutine[Any, Any, Response | ResponseStream]
Handler = Callable[[Request], Handled]


class Application(Protocol):
    """A handler with a life of its own."""

    def __call__(self, request: Request, /) -> Handled:
        """Answer one request."""

    async def start(self) -> None:
        """Hold open what it needs; called before the first request."""

    def end_streams(self) -> None:
        """End what would never end by itself, because the server is going; calls are still answered."""

    async def stop(self) -> None:
        """Let go of everything; called after the last response."""


_SINGLETONS = frozenset({b"host", b"origin", b"authorization"})


def repeats_singleton(pairs: HeaderPairs) -> bool:
    """Tell whether a header by which callers are let in comes twice: who reads the other one is fooled."""
    names = [name for name, _ in pairs if name in _SINGLETONS]
    return len(set(names)) != len(names)


def _join_repeated(pairs: HeaderPairs) -> dict[bytes, bytes]:
    """Read a header that comes several times as one list, which is what HTTP takes it for."""
    headers: dict[bytes, bytes] = {}
    for name, value in pairs:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return headers
