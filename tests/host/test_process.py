"""Process: one that is told to end answers every request that has reached it."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from bridgehead.host import process
from bridgehead.host.process import raise_file_limit
from bridgehead.mcp import Limits
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.memory import resident_bytes
from tests.support.host_command import Command, serving
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import call, encode, stateless
from tests.support.waiting import PATIENCE, until

CLIENTS = 48
RUNS = 20


class Client:
    """A client that calls again as soon as it has an answer, until nobody listens any more."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.answered = 0
        self.cut_off = 0
        message = stateless("tools/call", call("alpha_later", {"text": "hello"}))
        body = encode(message)
        own = {"Content-Length": str(len(body)), "Host": "localhost"}
        headers = {**JSON_POST, **mirrored(message), **own}
        lines = "".join(f"{name}: {value!s}\r\n" for name, value in headers.items())
        self._request = f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body

    async def run(self) -> None:
        with suppress(ConnectionRefusedError, ConnectionResetError):  # of the connection: nothing was sent
            while True:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                with suppress(ConnectionError):  # whatever was not answered is counted
                    await self._use(reader, writer)
                writer.close()

    async def _use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_kept = True
        while is_kept:
            writer.write(self._request)
            self.cut_off += 1
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            assert b"hello" in await reader.readexactly(length)
            self.cut_off -= 1
            self.answered += 1
            is_kept = b"connection: close" not in head.lower()


async def end_under_load(host: Command) -> tuple[int, int]:
    clients = [Client(host.port) for _ in range(CLIENTS)]
    running = [asyncio.create_task(client.run()) for client in clients]
    async with asyncio.timeout(PATIENCE):
        while any(client.answered < 3 for client in clients):
            await asyncio.sleep(0.01)
        host.process.send_signal(signal.SIGTERM)
        await asyncio.gather(*running)
    assert await asyncio.to_thread(host.process.wait, PATIENCE) == 0
    return sum(client.answered for client in clients), sum(client.cut_off for client in clients)


@pytest.mark.parametrize("run", range(RUNS))
async def test_nobody_is_cut_off_when_a_busy_host_ends(tmp_path: Path, run: int) -> None:
    with serving(tmp_path, "--bridges", "alpha") as host:
        answered, cut_off = await end_under_load(host)

    assert answered >= 3 * CLIENTS
    assert cut_off == 0


@pytest.mark.parametrize(
    ("hard", "highest", "expected"),
    [(4096, 4096, 4096), (1_048_576, 1_048_576, 1_048_576), (-1, 61_440, 61_440), (-1, 10_240, 10_240)],
)
def test_as_many_files_may_be_open_as_the_system_takes_for_a_limit(
    hard: int, highest: int, expected: int
) -> None:
    """On macOS the hard limit is none at all, and asking for just that is refused."""
    limit = [256, hard]

    def set_limit(_: int, wanted: tuple[int, int]) -> None:
        if not 0 <= wanted[0] <= highest:
            raise ValueError("current limit exceeds maximum limit")
        limit[:] = wanted

    raise_file_limit(SimpleNamespace(RLIMIT_NOFILE=7, getrlimit=lambda _: tuple(limit), setrlimit=set_limit))

    assert limit == [expected, hard]


async def test_memory_that_is_free_between_small_blocks_is_given_back_to_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "_WATCH_SECONDS", 0.01)
    blocks = [b"x" * (2000 + number % 7) for number in range(50_000)]  # 100 MB
    kept = blocks[::50]
    del blocks
    before = resident_bytes()

    watching = asyncio.create_task(process._watch_memory(Accounts(Limits())))  # noqa: SLF001
    await until(lambda: resident_bytes() < before - 60_000_000)

    watching.cancel()
    assert len(kept) == 1000


async def test_memory_that_no_caller_is_charged_for_counts_against_the_limit_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "_WATCH_SECONDS", 0.001)
    used = 10
    accounts = Accounts(Limits(memory_bytes=100), lambda: used)
    watching = asyncio.create_task(process._watch_memory(accounts))  # noqa: SLF001

    used = 200
    await until(lambda: accounts.is_full)
    used = 50
    await until(lambda: not accounts.is_full)
    watching.cancel()
