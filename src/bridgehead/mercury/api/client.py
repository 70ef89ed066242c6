"""Api: the one way to the Mercury API. Bounded in size and time, on a transport that keeps its connections.

Everything that can go wrong on the way becomes a `MercuryError` here and nowhere else. Retries, keys and
limits are not its business: a request is made once, with the key that it is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from msgspec import Struct

from bridgehead import __version__
from bridgehead.runtime.clock import Clock

from .. import failures
from ..calling.retries import retry_after
from ..errors import ApiFailed, MercuryError
from ..http.transport import ConnectFailed, ConnectionBroken, Response, Transport
from ..settings import MercurySettings

_OK = 200
_LOST = (ConnectFailed, ConnectionBroken, TimeoutError)


class Request(Struct, frozen=True):
    """One request: where to, with what, for which model, with which key, and how long it may take."""

    path: str
    model: str
    body: bytes
    key: str
    seconds: float
    first_byte_seconds: float | None = None


class Api:
    """A client of the API; open while the server serves."""

    def __init__(self, settings: MercurySettings, clock: Clock) -> None:
        self._url = settings.api_url
        self._clock = clock
        self._most_bytes = settings.max_response_size
        self._idle_seconds = settings.idle_timeout / 1000
        self._transport = transport_of(settings)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._transport.close()

    async def get(self, path: str, key: str, seconds: float) -> bytes:
        """Fetch something; raises `MercuryError`."""
        return await self._whole("GET", Request(path, "", b"", key, seconds))

    async def post(self, request: Request) -> bytes:
        """Send a request and return the whole answer; raises `MercuryError`."""
        return await self._whole("POST", request)

    async def _whole(self, method: str, request: Request) -> bytes:
        try:
            async with asyncio.timeout(request.seconds):
                async with self._transport.request(*_parts(method, request)) as response:
                    body = await self._body(response, request.seconds)
        except _LOST as problem:
            raise self._lost(problem, request.seconds) from problem
        if response.status != _OK:
            raise self._refused(response, body, request.model)
        return body

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request and give the answer piece by piece; leaving early ends it at the other end."""
        exchange = self._transport.request(*_parts("POST", request))
        first_byte = request.first_byte_seconds or request.seconds
        try:
            async with asyncio.timeout(request.seconds):
                response = await _begun(exchange, first_byte)
                try:
                    if response.status != _OK:
                        body = await self._body(response, first_byte)
                        raise self._refused(response, body, request.model)
                    yield self._pieces(response)
                finally:
                    await exchange.__aexit__(None, None, None)
        except _LOST as problem:
            raise self._lost(problem, request.seconds) from problem

    async def _pieces(self, response: Response) -> AsyncIterator[bytes]:
        try:
            while piece := await response.read(self._idle_seconds):
                yield piece
        except TimeoutError as problem:
            raise too_slow(f"nothing more came for {self._idle_seconds:.3g} s") from problem

    async def _body(self, response: Response, seconds: float) -> bytes:
        """Read a body, but never more than the limit."""
        pieces: list[bytes] = []
        size = 0
        while piece := await response.read(seconds):
            size += len(piece)
            if size > self._most_bytes:
                raise too_large(self._most_bytes)
            pieces.append(piece)
        return b"".join(pieces)

    def _refused(self, response: Response, body: bytes, model: str) -> MercuryError:
        wait = retry_after(
            response.header("retry-after-ms"), response.header("retry-after"), self._clock.now()
        )
        return failures.refused(response.status, body, wait, model)

    def _lost(self, problem: Exception, seconds: float) -> MercuryError:
        """Give the error for a request that got no answer, or not all of it."""
        if isinstance(problem, TimeoutError):
            return too_slow(f"it did not answer in whole within its time of {seconds:.3g} s")
        if isinstance(problem, ConnectFailed):
            return unreachable(self._url, str(problem))
        return ApiFailed(
            f"The connection to the Mercury API broke: {problem}.",
            "CONNECTION_LOST",
            is_transient=True,
            is_outage=True,
            is_charge_possible=True,
            next_step="Try again; if it stays like this, check the network and MERCURY_API_URL.",
        )


async def _begun(exchange: AbstractAsyncContextManager[Response], seconds: float) -> Response:
    """Send a request and wait for the head of its answer."""
    try:
        async with asyncio.timeout(seconds):
            return await exchange.__aenter__()
    except TimeoutError as problem:
        raise too_slow(f"it did not begin to answer within {seconds:.3g} s") from problem


def transport_of(settings: MercurySettings) -> Transport:
    """Make the transport that the settings ask for."""
    from ..http.pool import Pool
    from ..http.proxy import proxy_for

    return Pool(
        settings.api_url,
        settings.connect_timeout / 1000,
        settings.max_connections,
        proxy_for(settings.api_url, settings),
        http2=settings.http2,
    )


def _parts(method: str, request: Request) -> tuple[str, str, dict[str, str], bytes, float]:
    headers = {
        "Authorization": f"Bearer {request.key}",
        "Content-Type": "application/json",
        "User-Agent": f"bridgehead/{__version__}",
    }
    return method, request.path, headers, request.body, request.seconds


def too_slow(what: str) -> MercuryError:
    """Say that the API took too long."""
    return ApiFailed(
        f"The Mercury API was too slow: {what}.",
        "TIMEOUT",
        is_transient=True,
        is_charge_possible=True,
        next_step="Try again, ask for less (max_tokens), or allow more with timeout_ms.",
    )


def too_large(most: int) -> MercuryError:
    """Say that an answer has more bytes than this server takes."""
    return ApiFailed(
        f"The answer has more than {most:,} bytes, which is more than this server takes.",
        "RESPONSE_TOO_LARGE",
        is_charge_possible=True,
        next_step="Ask for less (max_tokens), or raise MERCURY_MAX_RESPONSE_SIZE.",
    )


def unreachable(url: str, why: str) -> MercuryError:
    """Say that there is no connection to the API."""
    return ApiFailed(
        f"The Mercury API at {url} cannot be reached: {why}.",
        "CONNECTION_FAILED",
        is_transient=True,
        is_outage=True,
        next_step="Check the network, the proxy settings and MERCURY_API_URL, then try again.",
    )
