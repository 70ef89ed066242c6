"""Api: the one way to the Mercury API. Bounded in size and time, on a pool that keeps its connections.

Everything that can go wrong on the way becomes a `MercuryError` here and nowhere else. Retries, keys and
limits are not its business: a request is made once, with the key that it is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from bridgehead import __version__
from bridgehead.runtime.clock import Clock
from bridgehead.runtime.http import (
    BodyTooLarge,
    ConnectFailed,
    ConnectionBroken,
    Exchange,
    Pool,
    Proxies,
    Response,
)

from .. import failures
from ..calling.retries import retry_after
from ..errors import ApiFailed, MercuryError
from ..settings import MercurySettings

_OK = 200
_HEADERS = (
    ("Accept", "application/json, text/event-stream"),
    ("Content-Type", "application/json"),
    ("User-Agent", f"bridgehead/{__version__}"),
)
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
        self._pool = make_pool(settings)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._pool.close()

    async def get(self, path: str, key: str, seconds: float) -> bytes:
        """Fetch something; raises `MercuryError`."""
        return await self._whole("GET", Request(path, "", b"", key, seconds))

    async def post(self, request: Request) -> bytes:
        """Send a request and return the whole answer; raises `MercuryError`."""
        return await self._whole("POST", request)

    async def _whole(self, method: str, request: Request) -> bytes:
        try:
            async with asyncio.timeout(request.seconds):
                async with self._exchange(method, request) as response:
                    body = await self._body(response, request.seconds)
        except _LOST as problem:
            raise self._lost(problem, request.seconds) from problem
        if response.status != _OK:
            raise self._refused(response, body, request.model)
        return body

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request and give the answer piece by piece; leaving early ends it at the other end."""
        exchange = self._exchange("POST", request)
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
        try:
            return await response.read_body(self._most_bytes, seconds)
        except BodyTooLarge as problem:
            raise too_large(self._most_bytes) from problem

    def _exchange(self, method: str, request: Request) -> Exchange:
        headers = (*_HEADERS, ("Authorization", f"Bearer {request.key}"))
        return self._pool.request(method, request.path, headers, request.body)

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


async def _begun(exchange: Exchange, seconds: float) -> Response:
    """Send a request and wait for the head of its answer."""
    try:
        async with asyncio.timeout(seconds):
            return await exchange.__aenter__()
    except TimeoutError as problem:
        raise too_slow(f"it did not begin to answer within {seconds:.3g} s") from problem


def make_pool(settings: MercurySettings) -> Pool:
    """Make the pool of connections that the settings ask for."""
    proxies = Proxies(
        https=settings.https_proxy,
        http=settings.http_proxy,
        other=settings.all_proxy,
        exempt=settings.no_proxy,
    )
    return Pool(
        settings.api_url,
        connect_seconds=settings.connect_timeout / 1000,
        max_connections=settings.max_connections,
        proxy=proxies.choose(settings.api_url),
    )


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
