"""What is measured: the same requests through a bare WebSocket, and through the bridge's own tools."""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
from websockets.asyncio.server import ServerConnection, serve

from bench.bitburner.far_side import FILES, SMALL
from bridgehead.bitburner.bridge import make_bridge
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.mcp import in_memory

READS = 1000
LIMIT = 60.0
REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{"filename":"a.js","server":"home"}}'

Run = Callable[[], Awaitable[None]]


class Side:
    """One of the two ways: everything at once, and many small reads."""

    def __init__(self, get_all: Run, read_many: Run) -> None:
        self.get_all = get_all
        self.read_many = read_many


@asynccontextmanager
async def dialled(url: str) -> AsyncIterator[None]:
    """Let a far side dial in."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.bitburner.far_side", url)
    try:
        yield
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def bare_socket() -> AsyncIterator[ServerConnection]:
    """Serve a WebSocket and no more; yield the far side's connection."""
    arrived: asyncio.Future[ServerConnection] = asyncio.get_running_loop().create_future()

    async def accept(socket: ServerConnection) -> None:
        arrived.set_result(socket)
        await socket.wait_closed()

    options: dict[str, Any] = {"max_size": None, "compression": None, "ping_interval": None}
    async with serve(accept, "127.0.0.1", 0, **options) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with dialled(f"ws://127.0.0.1:{port}"):
            yield await asyncio.wait_for(arrived, LIMIT)


@asynccontextmanager
async def bare() -> AsyncIterator[Side]:
    """Ask, receive, decode."""
    async with bare_socket() as socket:

        async def get_all() -> None:
            await socket.send(REQUEST % (1, b"getAllFiles"), text=True)
            reply = msgspec.json.decode(await socket.recv(decode=False))
            assert len(reply["result"]) == FILES

        async def read_many() -> None:
            for number in range(READS):
                await socket.send(REQUEST % (number, b"getFile"), text=True)
            for _ in range(READS):
                assert msgspec.json.decode(await socket.recv(decode=False))["result"] == SMALL

        yield Side(get_all, read_many)


Call = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def served(state: str, **environment: str) -> AsyncIterator[Call]:
    """Serve the bridge with the same far side; yield what calls the handler of a tool."""
    variables = {
        "BITBURNER_LISTEN": "0",
        "BRIDGEHEAD_STATE_DIR": state,
        "MCP_LOG_LEVEL": "warn",
        "RPC_TIMEOUT_MS": "60000",
        "BITBURNER_CONNECT_WAIT_MS": "60000",
        **environment,
    }
    bridge = make_bridge(BitburnerSettings(variables))
    async with in_memory.connect(bridge) as client:
        await client.call("connection_status")
        session = client.dispatcher.lifespans[bridge].value
        async with dialled(f"ws://{session.connection.address}"):
            await session.connection.require_link()
            # A new game is compared with what was written to it; nothing is measured meanwhile.
            await asyncio.gather(*session._background)  # noqa: SLF001
            context = SimpleNamespace(
                state=session, request_id=1, principal=None, revision=SimpleNamespace(stateless=True)
            )

            async def call(tool: str, **arguments: Any) -> Any:
                declared = bridge.tools[tool]
                return await declared.handler(declared.input_type(**arguments), context)

            yield call


@asynccontextmanager
async def ours() -> AsyncIterator[Side]:
    """Call the handlers of the bridge's tools."""
    with tempfile.TemporaryDirectory() as state:
        async with served(state) as call:

            async def get_all() -> None:
                assert (await call("get_all_files", everything=True)).text.count('"filename"') == FILES

            async def read_many() -> None:
                answers = await asyncio.gather(*(call("read_file", filename="a.js") for _ in range(READS)))
                assert all(answer.text == SMALL for answer in answers)

            yield Side(get_all, read_many)


async def seconds(run: Run) -> float:
    """Measure one run."""
    began = time.perf_counter()
    async with asyncio.timeout(LIMIT):
        await run()
    return time.perf_counter() - began
