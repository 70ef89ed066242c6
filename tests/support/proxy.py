"""The TCP proxy of the tests: passes bytes on between clients and one server, and breaks as a test asks."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

from tests.support.tcp import serving

Fault = Literal["none", "silent", "mute", "refused"]
"""`mute` passes requests on and loses their answers. `silent` loses both, and a connection that lost some
bytes stays silent: no stream goes on behind a gap. `refused` closes new connections at once."""


class Proxy:
    """What stands between clients and one server."""

    def __init__(self, server_port: int, host: str = "127.0.0.1") -> None:
        self._server = (host, server_port)
        self.port = 0
        self.fault: Fault = "none"
        self.delay = 0.0
        """Seconds that every piece of an answer waits."""
        self.cut_answer_to: Callable[[bytes], bool] | None = None
        """Which request's answer is lost together with its connection; forgotten once one was found."""
        self.cuts = 0
        """How often that has happened."""
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def through(self, url: str) -> str:
        """Return the URL of the server, by way of this proxy."""
        return url.replace(f":{self._server[1]}", f":{self.port}", 1)

    def cut(self) -> None:
        """End every connection at once."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes = b""
    ) -> None:
        """Carry one connection until either side ends it; `first` goes to the server before the rest."""
        if self.fault == "refused":
            return
        self.connections += 1
        there, back = await asyncio.open_connection(*self._server)
        back.write(first)
        self._writers |= {writer, back}
        # Each belongs to this connection: that it lost something, and that its next answer is to be cut off.
        broken, cutting = asyncio.Event(), asyncio.Event()

        async def pass_requests() -> None:
            while data := await reader.read(65536):
                if self.cut_answer_to is not None and self.cut_answer_to(data):
                    self.cut_answer_to = None
                    cutting.set()
                if self.fault == "silent":
                    broken.set()
                if not broken.is_set():
                    back.write(data)
                    await back.drain()

        async def pass_answers() -> None:
            while data := await there.read(65536):
                if cutting.is_set():  # the server has done it, and nobody hears of that
                    self.cuts += 1
                    return
                await asyncio.sleep(self.delay)
                if self.fault == "silent":
                    broken.set()
                if not broken.is_set() and self.fault != "mute":
                    writer.write(data)
                    await writer.drain()

        ways = [asyncio.create_task(pass_requests()), asyncio.create_task(pass_answers())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            back.close()  # before anything is waited for: this task may be cancelled here once more
            self._writers -= {writer, back}
            for way in ways:
                way.cancel()
                with suppress(asyncio.CancelledError, ConnectionError):
                    await way


@asynccontextmanager
async def proxied(server_port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """Run a proxy in front of a port of this machine, for clients that speak TLS if there is some."""
    proxy = Proxy(server_port)
    async with serving(proxy.carry, tls) as proxy.port:
        yield proxy
