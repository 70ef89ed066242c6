"""Client: send requests to the Mercury API over pooled connections, bounded in size and time.

Only this module turns network failures into `MercuryError`. A request is sent once, with the given key;
retries, choice of keys and limits belong to `calling`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from bridgehead import __version__
from bridgehead.runtime.http import (
    BodyTooLarge,
    CertificateRefused,
    ConnectFailed,
    ConnectionBroken,
    Exchange,
    Pool,
    Proxies,
    Response,
)
from bridgehead.runtime.timing import Clock

from ..errors import MercuryError, format_seconds
from ..settings import MercurySettings
from .completions import read_response, read_stream
from .evidence import Evidence, Sent
from .refusals import read_usage, refused
from .stream import StreamedAnswer, begins_stream
from .tolerance import MAX_RESPONSE_BYTES, quote_bytes
from .wire import MODELS, ApiRequest

ProgressCallback = Callable[[StreamedAnswer], Awaitable[None]]
"""Awaited when an answer has grown, so a slow client slows the stream."""

CONNECT_SECONDS = 5.0
"""For TCP and TLS together. No request has been sent by then, so a retry is free."""
_SUCCESS = range(200, 300)
_LONGEST_START = 1000
"""Bytes after which it is clear whether an answer is a stream."""
_HEADERS = (
    ("Accept", "application/json, text/event-stream"),
    ("Accept-Encoding", "identity"),  # without this line, any compression is welcome (RFC 9110, 12.5.3)
    ("Content-Type", "application/json"),
    ("User-Agent", f"bridgehead/{__version__}"),
)
_FAILURES = (ConnectFailed, ConnectionBroken, TimeoutError, BodyTooLarge)
_FREE_LIMIT = "REQUEST_TIMEOUT"
_IN_ONE_PIECE = "The API sent the answer in one piece, not as a stream."
_VERSION = re.compile(r"/v\d[^/]*$")
_CLOSING_SECONDS = 0.05
"""How long to wait for the end of a complete stream; if it comes, the connection can be reused."""

Headers = tuple[tuple[str, str], ...]


class TimeLimit(Struct, frozen=True):
    """A time limit, and the setting that it comes from."""

    seconds: float
    setting: str


class Access(Struct, frozen=True):
    """How to address an API, beside its URL."""

    name: str = "Mercury API"
    """Its name in messages, after "the"."""
    query: str = ""
    """Added to every path, such as `?api-version=…`."""
    key_header: str = "Authorization"
    """The header of the key; in `Authorization`, the key is a bearer token."""
    headers: Headers = ()


MERCURY_API = Access()


class ApiClient:
    """Sends requests to one API; open while the server serves."""

    def __init__(self, settings: MercurySettings, clock: Clock, access: Access = MERCURY_API) -> None:
        self.name, self._key_header = access.name, access.key_header
        self._url, mark, query = settings.api_url.partition("?")
        self._query = access.query or mark + query
        self._clock = clock
        self._first_byte_seconds = settings.request_timeout / 1000
        self._idle_seconds = settings.idle_timeout / 1000
        proxies = Proxies(
            https=settings.https_proxy,
            http=settings.http_proxy,
            other=settings.all_proxy,
            exempt=settings.no_proxy,
        )
        self._pool = Pool(
            self._url,
            connect_seconds=CONNECT_SECONDS,
            proxy=proxies.choose(self._url),
            headers=(*_HEADERS, *access.headers),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def fetch_models(self, key: str, seconds: float, *, endpoint: str = "") -> bytes:
        """Return the undecoded list of all models, or of those of one endpoint."""
        return await self.fetch(endpoint + MODELS, key, seconds)

    async def fetch(self, path: str, key: str, seconds: float) -> bytes:
        """GET a path and return the undecoded body. Not for anything that costs money."""
        return await self._fetch(self._exchange("GET", path, b"", key), path, TimeLimit(seconds, _FREE_LIMIT))

    async def send(
        self, request: ApiRequest, key: str, limit: TimeLimit, report: ProgressCallback | None = None
    ) -> Sent:
        """Send a request once, and return how it ended; does not raise, even if it is cancelled.

        With `report`, a streamed answer is reported as it grows. Once it has begun, a failure carries the
        text so far and is never retried.
        """
        path = request.sent_path or request.path
        exchange = self._exchange("POST", path, request.payload, key, request.trace)
        answer = StreamedAnswer(
            is_diffusing=request.is_diffusing, max_bytes=MAX_RESPONSE_BYTES, api=self.name
        )
        status: int | None = None
        received: list[bytes] = []
        started = self._clock.monotonic()
        is_stream = report is not None and request.is_streamed
        try:
            async with asyncio.timeout(limit.seconds):
                # Entered by hand: the limit for the first byte must end before the rest is read.
                response = await (self._begin(exchange, limit) if is_stream else exchange.__aenter__())
                status = response.status
                try:
                    if status not in _SUCCESS:
                        raise await self._read_refusal(response, path, request.model)
                    whole: bytes | None
                    if is_stream and report is not None:
                        whole = await self._read_answer(response, answer, report)
                    else:
                        whole = await response.read_body(MAX_RESPONSE_BYTES, limit.seconds, received)
                finally:
                    await exchange.__aexit__(None, None, None)
            seconds = self._clock.monotonic() - started
            if whole is None:
                completion, usage = read_stream(answer, request, started, started + seconds)
            else:
                completion, usage = read_response(whole, request, seconds, self.name)
                if is_stream and report is not None:
                    answer.add_whole(completion)
                    await report(answer)
                    completion = completion.add_warning(_IN_ONE_PIECE)
        except MercuryError as error:
            if is_stream and status in _SUCCESS:  # the API bills what it has generated
                error.stop_retries(answer.received)
            return Sent(Evidence(exchange.is_written, status, usage=error.usage), error=error)
        except _FAILURES as problem:
            lost = self._lost(problem, limit, is_written=exchange.is_written)
            lost.__cause__ = problem
            lost.content = lost.content or quote_bytes(b"".join(received))
            if is_stream and status in _SUCCESS:
                lost.stop_retries(answer.received)
            return Sent(Evidence(exchange.is_written, status), error=lost)
        except asyncio.CancelledError as cancelled:
            return Sent(Evidence(exchange.is_written, status), error=cancelled)
        return Sent(Evidence(is_written=True, status=status, is_whole=True, usage=usage), completion)

    async def _begin(self, exchange: Exchange, limit: TimeLimit) -> Response:
        """Send a request and wait for the head of its response."""
        if self._first_byte_seconds < limit.seconds:
            limit = TimeLimit(self._first_byte_seconds, "REQUEST_TIMEOUT")
        try:
            async with asyncio.timeout(limit.seconds):
                return await exchange.__aenter__()
        except TimeoutError as problem:
            raise self._too_slow(
                "it did not begin to answer within", limit, is_written=exchange.is_written
            ) from problem

    async def _read_answer(
        self, response: Response, answer: StreamedAnswer, report: ProgressCallback
    ) -> bytes | None:
        """Read a stream to its end; if the response is not a stream, return its body, else None."""
        # The next read waits until the client has taken the text so far: a slow client slows the API, and
        # nothing piles up here.
        monotonic = self._clock.monotonic
        try:
            piece = await response.read(self._idle_seconds)
            # Some servers ignore `stream` and answer in one piece, under either content type. A field of an
            # event ends with a colon, and before it there may be empty lines.
            while b":" not in piece and len(piece) < _LONGEST_START:
                if not (more := await response.read(self._idle_seconds)):
                    break
                piece += more
            if piece and not begins_stream(piece):
                return piece + await response.read_body(MAX_RESPONSE_BYTES, self._idle_seconds)
            while piece:
                if answer.feed(piece, monotonic()):
                    await report(answer)
                if answer.is_done:
                    # Read to the end of the body if it comes at once: only then can the pool reuse the
                    # connection. Nothing in it can change the answer, so a failure here does not matter.
                    with suppress(TimeoutError, ConnectionBroken):
                        async with asyncio.timeout(_CLOSING_SECONDS):
                            while more := await response.read(_CLOSING_SECONDS):
                                answer.feed(more, monotonic())
                    break
                piece = await response.read(self._idle_seconds)
        except TimeoutError as problem:
            idle = TimeLimit(self._idle_seconds, "MERCURY_IDLE_TIMEOUT")
            raise self._too_slow("nothing more came for", idle, is_written=True) from problem
        answer.end(monotonic())
        return None

    async def _fetch(self, exchange: Exchange, path: str, limit: TimeLimit, model: str = "") -> bytes:
        try:
            async with asyncio.timeout(limit.seconds):
                async with exchange as response:
                    if response.status not in _SUCCESS:
                        raise await self._read_refusal(response, path, model)
                    return await response.read_body(MAX_RESPONSE_BYTES, limit.seconds)
        except _FAILURES as problem:
            raise self._lost(problem, limit, is_written=exchange.is_written) from problem

    def _exchange(self, method: str, path: str, body: bytes, key: str, trace: Headers = ()) -> Exchange:
        header = self._key_header
        value = f"Bearer {key}" if header.lower() == "authorization" else key
        return self._pool.request(method, path + self._query, ((header, value), *trace), body)

    async def _read_refusal(self, response: Response, path: str, model: str) -> MercuryError:
        try:
            body = await response.read_body(MAX_RESPONSE_BYTES, self._first_byte_seconds)
        except _FAILURES:  # the status alone decides about retries and money
            body = b""
        wait = read_retry_after(
            response.header("retry-after-ms"), response.header("retry-after"), self._clock.now()
        )
        error = refused(response.status, body, wait, path=path, model=model, api=self.name)
        error.usage = read_usage(body)
        if error.code == "NOT_FOUND" and not _VERSION.search(self._url):
            error.advise(
                f"{self._url} has no version at its end, which most servers need: try {self._url}/v1. "
                f"{error.next_step}"
            )
        return error

    def _lost(self, problem: Exception, limit: TimeLimit, *, is_written: bool) -> MercuryError:
        """Return the error for a request without a complete answer."""
        if isinstance(problem, BodyTooLarge):
            message = (
                f"The answer of the {self.name} has more than the {MAX_RESPONSE_BYTES:,} bytes that this "
            )
            return MercuryError("RESPONSE_TOO_LARGE", message + "server takes.")
        if isinstance(problem, TimeoutError):
            return self._too_slow(
                "it did not answer in whole within its time of", limit, is_written=is_written
            )
        if isinstance(problem, ConnectFailed):
            is_transient = not isinstance(problem, CertificateRefused)
            return MercuryError(
                "CONNECTION_FAILED",
                f"The {self.name} at {self._url} cannot be reached: {problem}.",
                next_step=None if is_transient else "",  # the problem's own text ends with the next step
                is_transient=is_transient,
            )
        message = (
            f"The connection to the {self.name} broke: {problem}. It was not sent again: it may be billed."
        )
        received = problem.received if isinstance(problem, ConnectionBroken) else b""
        return MercuryError("CONNECTION_LOST", message, content=quote_bytes(received))

    def _too_slow(self, what: str, limit: TimeLimit, *, is_written: bool) -> MercuryError:
        money = "It was not sent again: it may be billed." if is_written else "Nothing was sent."
        return MercuryError(
            "TIMEOUT",
            f"The {self.name} was too slow: {what} {format_seconds(limit.seconds)}. {money}",
            next_step=f"Raise {limit.setting}, give timeout_ms, or ask for less (max_tokens).",
        )


def read_retry_after(milliseconds: str | None, value: str | None, now: float) -> float | None:
    """Read `retry-after-ms` and `Retry-After` (seconds or a date) in seconds from now; None if invalid."""
    # `retry-after-ms` first: it is the more precise of the two.
    for text, unit in ((milliseconds, 1000.0), (value, 1.0)):
        try:
            seconds = float(text or "") / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    if not value:
        return None
    from email.utils import parsedate_to_datetime  # lazy: 0.4 MB of memory, needed only for a date

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return None
