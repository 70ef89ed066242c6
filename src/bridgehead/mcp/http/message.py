"""Messages: an HTTP request and its response, independent of the server that carries them. No I/O.

Everything served over HTTP has one entrance: a `Handler` is an async function from a `Request` to a response.
Our own server calls it for every request; `asgi.py` does so for any other server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

from ..calls.caller import Caller

HeaderPairs = Sequence[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
NO_CONTENT = 204
BODYLESS = frozenset({NO_CONTENT, 304})
"""Statuses whose responses have neither a body nor a Content-Length (RFC 9110 8.6)."""


class Response(NamedTuple):
    """A whole response."""

    status: int
    body: bytes = b""
    headers: HeaderPairs = ()

    @classmethod
    def json(cls, body: bytes, status: int = 200, headers: HeaderPairs = ()) -> Response:
        """Make a response with a JSON body."""
        return cls(status, body, (JSON, *headers))


class ResponseStream(ABC):
    """A response sent in pieces; its head has been sent."""

    __slots__ = ("status",)

    def __init__(self, status: int) -> None:
        self.status = status

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Send a piece, waiting while the client is slow to read. Does nothing once the client is gone."""

    @abstractmethod
    async def close(self) -> None:
        """End the response; a second call does nothing."""


class ClientGone(Exception):
    """The client hung up before it had sent its whole request."""


class Request(ABC):
    """One request: made by a server, read by a handler, which may wait for the rest of the body."""

    __slots__ = (
        "_when_gone",
        "address",
        "body",
        "extra_headers",
        "header_pairs",
        "headers",
        "identity",
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
        """The percent-decoded path below `mount`."""
        self.query = query
        self.header_pairs = pairs
        """The headers in their order, with names in lower case."""
        self.headers: dict[bytes, bytes] = dict(pairs)
        if len(self.headers) != len(pairs):  # RFC 9110 5.3: a repeated field is one list
            self.headers = {}
            for name, value in pairs:
                self.headers[name] = self.headers[name] + b", " + value if name in self.headers else value
        self.scheme = "http"
        self.address = ""
        """The peer's IP address."""
        self.mount = ""
        """The path under which another application mounts this one (ASGI `root_path`)."""
        self.principal: str | None = None
        """The authenticated caller; None without authentication."""
        self.identity: Caller | None = None
        """What `authenticate` found out beside the name."""
        self.token_id = ""
        """Differs between tokens of the same principal."""
        self.body: bytes | bytearray = b""
        """The part of the body that has arrived and is unread."""
        self.is_complete = False
        """Whether the whole body has arrived."""
        self.is_gone = False
        """Whether the client has hung up."""
        self.extra_headers: HeaderPairs = ()
        """Headers to add to its response, whichever that is."""
        self.stream: ResponseStream | None = None
        """Its response, if that is a stream and has begun."""
        self._when_gone: Callable[[], object] | None = None

    @property
    def caller(self) -> str:
        """The name that it is counted under: its principal or, without authentication, its address."""
        return self.principal or self.address

    def when_gone(self, act: Callable[[], object]) -> None:
        """Call `act` if the client hangs up before its response is complete; at once if it has."""
        self._when_gone = act
        if self.is_gone:
            act()

    def hang_up(self) -> None:
        """Mark the client as gone."""
        self.is_gone = True
        if self._when_gone is not None:
            self._when_gone()

    def abort(self) -> None:
        """Close the connection after the bytes sent so far, to simulate a broken far side.

        The handler's return value is then ignored.
        """
        raise NotImplementedError

    @abstractmethod
    async def read(self) -> bytes:
        """Return the next piece of the body, b"" after the last. Raises ClientGone."""

    @abstractmethod
    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        """Begin a response in pieces. The handler's coroutine returns the stream when it is done."""


AnyResponse = Response | ResponseStream
Handler = Callable[[Request], Coroutine[Any, Any, AnyResponse]]


class Application(Protocol):
    """A handler with a life cycle."""

    async def __call__(self, request: Request, /) -> AnyResponse:
        """Answer one request."""

    async def start(self) -> None:
        """Acquire resources; called before the first request."""

    def end_streams(self) -> None:
        """End open streams, because the server is stopping; calls are still answered."""

    async def stop(self) -> None:
        """Release resources; called after the last response."""


_SINGLETONS = frozenset({b"host", b"origin", b"authorization"})


def repeats_singleton(pairs: HeaderPairs) -> bool:
    """Whether a header that decides access is repeated: a proxy may have checked the other value."""
    names = [name for name, _ in pairs if name in _SINGLETONS]
    return len(set(names)) != len(names)
