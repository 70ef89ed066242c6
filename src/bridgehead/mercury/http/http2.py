"""HTTP/2 towards the API, through pyreqwest; HTTP/1.1 where the API does not speak it.

Many requests share one connection. pyreqwest lets a request run on that is cancelled before the head of its
answer has come, until its time is over; afterwards a cancelled one is gone at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from pyreqwest import exceptions
from pyreqwest.client import ClientBuilder
from pyreqwest.response import Response as Answer

from .transport import ConnectFailed, ConnectionBroken

_READ_AHEAD = 0
"""Bytes that are read before anybody asks. More than none would delay the first piece of a stream, and leave
a request that is cancelled meanwhile running."""


class Http2Response:
    """An answer whose head has come."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status = answer.status

    def header(self, name: str) -> str | None:
        """Give the value of a header."""
        return self._answer.get_header(name)

    async def read(self, seconds: float) -> bytes:
        """Give the next piece of the body; nothing is the end."""
        try:
            async with asyncio.timeout(seconds):
                piece = await self._answer.body_reader.read_chunk()
        except exceptions.PyreqwestError as error:
            raise ConnectionBroken(_cause(error)) from error
        return b"" if piece is None else bytes(piece)


class Http2Pool:
    """A client of one API. Proxies are those of the environment; no redirect is followed with the key."""

    def __init__(self, url: str, connect_seconds: float, most: int) -> None:
        self._url = url
        self._client = (
            ClientBuilder()
            .http2(enable=True)
            .follow_redirects(enable=False)
            .max_connections(most)
            .connect_timeout(timedelta(seconds=connect_seconds))
            .build()
        )

    async def close(self) -> None:
        """Let go of all connections."""
        await self._client.close()

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float
    ) -> AsyncIterator[Http2Response]:
        """Send a request and wait for the head of its answer."""
        building = self._client.request(method, self._url + path).headers(headers).body_bytes(body)
        opening = building.timeout(timedelta(seconds=seconds)).streamed_read_buffer_limit(_READ_AHEAD)
        request = opening.build_streamed()
        try:
            answer = await request.__aenter__()
        except exceptions.RequestTimeoutError as error:
            raise TimeoutError from error
        except exceptions.ConnectError as error:
            raise ConnectFailed(_cause(error)) from error
        except exceptions.PyreqwestError as error:
            raise ConnectionBroken(_cause(error)) from error
        try:
            yield Http2Response(answer)
        finally:
            await request.__aexit__(None, None, None)


def _cause(error: exceptions.PyreqwestError) -> str:
    """Give the innermost reason, which is the one that tells something."""
    causes = getattr(error, "details", {}).get("causes") or []
    return str(causes[-1]["message"] if causes else error.message)
