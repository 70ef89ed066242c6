"""A TCP proxy that breaks what it carries, in the way that a test asks for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


class FaultProxy:
    """Passes bytes on between clients and one server."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self.port = 0
        self.cut_answer_to: Callable[[bytes], bool] | None = None
        """Which message's answer is lost together with the connection; forgotten once it has been."""
        self.cuts = 0
        self.delay = 0.0
        """Seconds that every piece from the server waits."""
        self.is_refusing = False
        """Whether new connections are closed at once."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until one side ends it."""
        if self.is_refusing:
            writer.close()
            return
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        cut = asyncio.Event()
        self._writers |= {writer, up_writer}
        ways = (
            asyncio.ensure_future(self._carry_up(reader, up_writer, cut)),
            asyncio.ensure_future(self._carry_down(up_reader, writer, cut)),
        )
        self._tasks.update(ways)
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for one in (writer, up_writer):
            self._writers.discard(one)
            one.close()

    async def _carry_up(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 16):
            if self.cut_answer_to is not None and self.cut_answer_to(data):
                self.cut_answer_to = None
                cut.set()
            writer.write(data)
            await writer.drain()

    async def _carry_down(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 16):
            if cut.is_set():  # the server has done it, and nobody hears of that
                self.cuts += 1
                return
            await asyncio.sleep(self.delay)
            writer.write(data)
            await writer.drain()

    def drop_all(self) -> None:
        """End every connection at once."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        """End what is left."""
        self.drop_all()
        for task in tuple(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await task


@asynccontextmanager
async def fault_proxy(port: int) -> AsyncIterator[FaultProxy]:
    """Run a proxy in front of a port."""
    proxy = FaultProxy(port)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
