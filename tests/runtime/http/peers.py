"""For tests of the HTTP client: far sides that say what a test wants them to say, and pools to reach them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from bridgehead.runtime.http import Pool
from tests.support.tcp import Serve

NOTHING = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def saying(*pieces: bytes) -> Serve:
    """Answer the first request with some bytes, in pieces, and close."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return serve


def repeating(piece: bytes, first: bytes = b"") -> tuple[Serve, Callable[[], int]]:
    """Answer without an end; gives the server, and a function that tells how many bytes it has sent."""
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        while True:
            writer.write(piece)
            sent += len(piece)
            await writer.drain()

    return serve, lambda: sent


@asynccontextmanager
async def open_pool(url: str, **options: Any) -> AsyncIterator[Pool]:
    pool = Pool(url, **{"connect_seconds": 5.0, **options})
    try:
        yield pool
    finally:
        await pool.close()


async def ask(pool: Pool, method: str = "GET", body: bytes = b"") -> bytes:
    """Make a request and give its status and body."""
    async with pool.request(method, "/models", (), body) as response:
        return b"%d " % response.status + await response.read_body(1_000_000, 5.0)


async def ask_once(url: str) -> bytes:
    async with open_pool(url) as pool:
        return await ask(pool)
