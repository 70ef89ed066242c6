"""What tests of HTTP/2 ask with: a pool, a request through it, and waiting for what it leads to."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from bridgehead.mercury.http.pool import Pool
from bridgehead.mercury.http.proxy import Proxy
from tests.support import waiting
from tests.support.http2_peer import Http2Peer, PeerStream
from tests.support.waiting import PATIENCE

until = partial(waiting.until, within=PATIENCE)
Peer = Callable[..., AbstractAsyncContextManager[Http2Peer]]


@asynccontextmanager
async def pool_of(url: str, most: int = 256, proxy: Proxy | None = None) -> AsyncIterator[Pool]:
    pool = Pool(url, 2.0, most, proxy, http2=True)
    try:
        yield pool
    finally:
        await pool.close()


async def ask(pool: Pool, body: bytes = b"{}") -> tuple[int, bytes]:
    """Ask for something and read the whole answer."""
    found = b""
    async with pool.request("POST", "/ask", {"X-Name": "some"}, body, 5.0) as response:
        while piece := await response.read(5.0):
            found += piece
        return response.status, found


async def echo(stream: PeerStream) -> None:
    await stream.answer(stream.body)
