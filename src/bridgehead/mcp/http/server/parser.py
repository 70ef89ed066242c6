"""Parser: HTTP/1.1 requests out of bytes, bounded whatever their framing. No I/O; the parsing is httptools'.

It is fed slice by slice, so that a piece of data with thousands of requests in it cannot keep the loop. What
is wrong with the bytes is a `Malformed`, with the refusal that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote

import httptools

from ..message import repeats_singleton

if TYPE_CHECKING:
    from ..message import HeaderPairs

MOST_HEAD_BYTES = 64 * 1024
_MOST_RAW_HEAD_BYTES = 2 * MOST_HEAD_BYTES
"""What a head may weigh with everything around its fields. The parser does not say where in a slice a head
begins, so this bound is known only to a slice; the one above is exact, however the bytes are cut."""
MOST_HEADERS = 128
MOST_LENGTH_DIGITS = 18
SLICE_BYTES = 2 * 1024
"""What is parsed at a time while heads come in: about 0.4 ms of the smallest requests that there are."""
CROWD_SLICE_BYTES = 256
"""The same while many connections wait in line, so that few requests are kept long before they are served."""
BODY_SLICE_BYTES = 4 * 1024
"""The same while a body comes in: about 0.5 ms of chunks of one byte each."""
MOST_UNREAD_BYTES = 256 * 1024
"""Of a body, from which on no more is read from the client."""
_MOST_FRAMING = 8
"""Bytes of framing that a byte of body may have: one-byte chunks need five."""


class Refusal(NamedTuple):
    """Why a connection gets no further answer: the status, the word for logs, and what the client is told."""

    status: int
    reason: str
    message: bytes


class Malformed(Exception):
    """Bytes that are no request we take.

    A new one each time: an exception that is raised again keeps the frames of every time before.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class Incoming(Protocol):
    """A request whose head is there, and whose body is coming in."""

    headers: dict[bytes, bytes]

    def take(self, piece: bytes) -> int:
        """Take a piece of its body; returns how much of it is unread."""

    def complete(self) -> None:
        """Note that its body has ended."""


class Sink(Protocol):
    """What gets the requests."""

    def begin_request(
        self,
        method: str,
        target: tuple[bytes, str, bytes],
        pairs: HeaderPairs,
        *,
        is_http11: bool,
        keep_alive: bool,
    ) -> Incoming:
        """Take the head of a request."""

    def pause_reading(self) -> None:
        """Take no more from the client: enough of a body is unread."""

    def end_request(self) -> None:
        """Note that the last request that was begun is whole."""


class RequestParser:
    """Parses the requests of one connection."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._body_bytes = 0
        self._framing_bytes = 0
        """What came in beside a body's own bytes, less what its chunks may need."""
        self._plain_body_left = 0
        self.body_pieces = 0
        """How many pieces of bodies there were: what a slice costs is their number, not its length."""
        self.incoming: Incoming | None = None
        """The request whose body is coming in."""
        self.is_in_head = False
        self.has_begun = False
        """Whether there was ever anything that looked like a request."""

    def close(self) -> None:
        """Let go of everything: the parser and we hold each other, and a head that was refused is large."""
        del self._parser, self._sink
        self._url, self._headers = b"", []

    def next_slice(self, *, is_crowded: bool) -> int:
        """Return how much to feed at most at a time."""
        if self.incoming is not None:
            return BODY_SLICE_BYTES
        return CROWD_SLICE_BYTES if is_crowded else SLICE_BYTES

    def feed(self, data: bytes | memoryview) -> None:
        """Parse a slice. Raises Malformed; after that there is nothing more to be made of the connection."""
        incoming, body_before, size = self.incoming, self._body_bytes, len(data)
        self._parse(data)
        if self.is_in_head:
            self._head_bytes += size
            if self._head_bytes > _MOST_RAW_HEAD_BYTES or len(self._headers) > MOST_HEADERS:
                raise Malformed(_HEAD_TOO_LARGE)
        elif incoming is not None and self.incoming is incoming:
            body = self._body_bytes - body_before
            self._framing_bytes = max(0, self._framing_bytes + size - body * (_MOST_FRAMING + 1))
            if self._framing_bytes > MOST_HEAD_BYTES:
                raise Malformed(_FRAMING_TOO_LARGE)

    def _parse(self, data: bytes | memoryview) -> None:
        while data:  # more than once only behind a request that offers another protocol
            if self._plain_body_left:
                data = self._take_plain_body(data)
                continue
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._ignore_upgrade()
            except httptools.HttpParserError as problem:
                # What a callback raises comes as the context of an error of the parser's own.
                if isinstance(problem.__context__, Malformed):
                    raise problem.__context__  # noqa: B904
                # However it was cut: what is too much before what is malformed is what is told.
                is_too_much = self.is_in_head and len(self._headers) > MOST_HEADERS
                raise Malformed(_HEAD_TOO_LARGE if is_too_much else _MALFORMED)  # noqa: B904
            else:
                return

    def _ignore_upgrade(self) -> None:
        """Serve a request that offers another protocol as the HTTP/1.1 that it also is.

        The parser stops after the headers of such a request, so its body is taken here.
        """
        headers = dict(self._headers)
        length = headers.get(b"content-length", b"0")
        if b"transfer-encoding" in headers or not length.isdigit() or len(length) > MOST_LENGTH_DIGITS:
            raise Malformed(_MALFORMED)
        self._plain_body_left = int(length)
        self._parser = httptools.HttpRequestParser(self)
        if not self._plain_body_left:
            self._complete()

    def _take_plain_body(self, data: bytes | memoryview) -> bytes | memoryview:
        body, rest = bytes(data[: self._plain_body_left]), data[self._plain_body_left :]
        self._plain_body_left -= len(body)
        self.on_body(body)
        if not self._plain_body_left:
            self._complete()
        return rest

    # --- what httptools calls ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._url = b""
        self._headers = []
        self._head_bytes = 0
        self.is_in_head = self.has_begun = True

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header; what comes behind a body is not one of the request's."""
        if self.incoming is None:
            self._headers.append((name.lower(), value))
        else:
            self._framing_bytes += len(name) + len(value)
            if self._framing_bytes > MOST_HEAD_BYTES:
                raise Malformed(_FRAMING_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Give the request on; it is served when its body is there, or when there is more of it than fits."""
        if len(self._headers) > MOST_HEADERS or self._head_bytes > MOST_HEAD_BYTES - SLICE_BYTES:
            self._check_head()
        if not self._url.startswith(b"/"):
            self._take_absolute()
        parser = self._parser
        path, _, query = self._url.partition(b"?")
        decoded = path.decode("latin-1")
        version = parser.get_http_version()
        self.is_in_head = False
        self._framing_bytes = self._body_bytes = 0
        self.incoming = self._sink.begin_request(
            parser.get_method().decode("latin-1"),
            (path, unquote(decoded) if "%" in decoded else decoded, query),
            self._headers,
            is_http11=version == "1.1",
            keep_alive=version != "1.0" and parser.should_keep_alive(),
        )
        if len(self.incoming.headers) != len(self._headers) and repeats_singleton(self._headers):
            raise Malformed(_REPEATED)

    def _take_absolute(self) -> None:
        """Take a target with scheme and authority apart, as a proxy is sent it; the authority is the host."""
        scheme, mark, rest = self._url.partition(b"://")
        if mark and scheme.lower() in (b"http", b"https"):
            authority, _, path = rest.partition(b"/")
            self._url = b"/" + path
            self._headers = [field for field in self._headers if field[0] != b"host"]
            self._headers.append((b"host", authority))

    def _check_head(self) -> None:
        if (
            len(self._headers) > MOST_HEADERS
            or len(self._url) + sum(len(name) + len(value) for name, value in self._headers) > MOST_HEAD_BYTES
        ):
            raise Malformed(_HEAD_TOO_LARGE)

    def on_body(self, body: bytes) -> None:
        """Give a piece of the body on."""
        self._body_bytes += len(body)
        self.body_pieces += 1
        request = self.incoming
        if request is not None and request.take(body) > MOST_UNREAD_BYTES:
            self._sink.pause_reading()

    def on_message_complete(self) -> None:
        """Note that the request is whole; where it offers an upgrade, its body is still to come."""
        if not self._parser.should_upgrade():
            self._complete()

    def _complete(self) -> None:
        request, self.incoming = self.incoming, None
        if request is not None:
            request.complete()
            self._sink.end_request()


_MALFORMED = Refusal(400, "malformed", b"Not a valid HTTP request")
_REPEATED = Refusal(400, "malformed", b"Host, Origin and Authorization may be given once")
_HEAD_TOO_LARGE = Refusal(431, "head_size", b"Too many header fields")
_FRAMING_TOO_LARGE = Refusal(431, "head_size", b"Too much beside the body: chunk extensions or trailers")
