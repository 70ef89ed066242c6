"""Api: the one way to the Mercury API. One pooled HTTP client, bounded in size and time.

Everything that the HTTP client can raise becomes a `MercuryError` here and nowhere else. Retries, keys and
limits are not its business: a request is made once, with the key that it is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from pyreqwest import exceptions
from pyreqwest.client import Client, ClientBuilder

from bridgehead import __version__
from bridgehead.runtime.clock import Clock

from . import failures
from .errors import ApiFailed, MercuryError
from .retrying import retry_after
from .settings import MercurySettings

if TYPE_CHECKING:
    from pyreqwest.request import RequestBuilder
    from pyreqwest.response import Response

_OK = 200
_IDLE_SECONDS = 90
_READ_AHEAD = 0
"""Bytes of a stream that are read before anybody asks. More than none would delay the first piece, and leave
a request that is cancelled meanwhile running at the other end."""


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
        self._client = _client(settings)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._client.close()

    async def get(self, path: str, key: str, seconds: float) -> bytes:
        """Fetch something; raises `MercuryError`."""
        request = Request(path, "", b"", key, seconds)
        return await self._whole(self._client.get(self._url + path), request)

    async def post(self, request: Request) -> bytes:
        """Send a request and return the whole answer; raises `MercuryError`."""
        return await self._whole(self._posting(request), request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request and give the answer piece by piece; leaving early ends it at the other end."""
        opening = self._opened(self._posting(request), request).build_streamed()
        first_byte = request.first_byte_seconds or request.seconds
        try:
            async with asyncio.timeout(first_byte):
                response = await opening.__aenter__()
        except TimeoutError as error:
            raise too_slow(f"no answer within {first_byte:.3g} s") from error
        except exceptions.PyreqwestError as error:
            raise _lost(error, self._url) from error
        try:
            if response.status != _OK:
                raise await self._refused(response, request.model)
            yield self._pieces(response)
        finally:
            await opening.__aexit__(None, None, None)

    async def _pieces(self, response: Response) -> AsyncIterator[bytes]:
        read = response.body_reader.read_chunk
        try:
            while True:
                async with asyncio.timeout(self._idle_seconds):
                    piece = await read()
                if piece is None:
                    return
                yield bytes(piece)
        except TimeoutError as error:
            raise too_slow(f"the answer stopped coming for {self._idle_seconds:.3g} s") from error
        except exceptions.PyreqwestError as error:
            raise _lost(error, self._url) from error

    def _posting(self, request: Request) -> RequestBuilder:
        posting = self._client.post(self._url + request.path).body_bytes(request.body)
        return posting.header("content-type", "application/json")

    @staticmethod
    def _opened(building: RequestBuilder, request: Request) -> RequestBuilder:
        building = building.header("authorization", f"Bearer {request.key}", is_sensitive=True)
        return building.timeout(timedelta(seconds=request.seconds)).streamed_read_buffer_limit(_READ_AHEAD)

    async def _whole(self, building: RequestBuilder, request: Request) -> bytes:
        try:
            async with self._opened(building, request).build_streamed() as response:
                if response.status != _OK:
                    raise await self._refused(response, request.model)
                return await self._body(response)
        except exceptions.PyreqwestError as error:
            raise _lost(error, self._url) from error

    async def _body(self, response: Response) -> bytes:
        """Read a body, but never more than the limit."""
        length = response.get_header("content-length")
        if length is not None and int(length) <= self._most_bytes:
            return bytes(await response.bytes())
        pieces: list[bytes] = []
        size = 0
        while (piece := await response.body_reader.read_chunk()) is not None:
            size += len(piece)
            if size > self._most_bytes:
                raise too_large(self._most_bytes)
            pieces.append(bytes(piece))
        return b"".join(pieces)

    async def _refused(self, response: Response, model: str) -> MercuryError:
        wait = retry_after(
            response.get_header("retry-after-ms"), response.get_header("retry-after"), self._clock.now()
        )
        body = await self._body(response)
        return failures.refused(response.status, body, wait, model)


def _client(settings: MercurySettings) -> Client:
    """Make the client. Proxies are those of the environment; a redirect is never followed with the key."""
    return (
        ClientBuilder()
        .user_agent(f"bridgehead/{__version__}")
        .http2(enable=True)
        .follow_redirects(enable=False)
        .max_connections(settings.max_connections)
        .connect_timeout(timedelta(milliseconds=settings.connect_timeout))
        .pool_idle_timeout(timedelta(seconds=_IDLE_SECONDS))
        .build()
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


def _lost(error: exceptions.PyreqwestError, url: str) -> MercuryError:
    """Give the error for a request that got no answer, or not all of it."""
    if isinstance(error, exceptions.ConnectTimeoutError | exceptions.PoolTimeoutError):
        return unreachable(url, "connecting took too long")
    if isinstance(error, exceptions.ConnectError):
        return unreachable(url, _cause(error))
    if isinstance(error, TimeoutError):
        return too_slow("the answer did not come, or stopped coming, in time")
    return ApiFailed(
        f"The connection to the Mercury API broke: {_cause(error)}.",
        "CONNECTION_LOST",
        is_transient=True,
        is_outage=True,
        is_charge_possible=True,
        next_step="Try again; if it stays like this, check the network and MERCURY_API_URL.",
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


def _cause(error: exceptions.PyreqwestError) -> str:
    """Give the innermost reason, which is the one that tells something."""
    causes = getattr(error, "details", {}).get("causes") or []
    return str(causes[-1]["message"] if causes else error.message)
