"""A rolling restart under load: replicas are ended and started one after the other, and no call fails."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen

from tests.scale.replicas import ROOT, balanced, environment_of
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import call, encode, stateless
from tests.support.ports import free_port, wait_until_listening
from tests.support.redis_server import running_redis
from tests.support.waiting import PATIENCE

CLIENTS = 8
ROUNDS = 2
CALLS_BETWEEN = 200
"""Calls that are answered before the next replica is restarted."""


class Replica:
    """One host, which keeps its port from start to start."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.port = free_port()
        self._environment = {**environment, "BRIDGEHEAD_STATE_DIR": str(folder)}
        self._process: Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and do not wait."""
        words = ["-m", "tests.support.host_process", "--port", str(self.port), "--bridges", "alpha"]
        self._process = Popen([sys.executable, *words], cwd=ROOT, env=self._environment, stderr=DEVNULL)

    async def end(self) -> int:
        """Tell it to end as a service manager does, and wait until it has."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self._process.wait, PATIENCE)

    async def ready(self) -> None:
        """Wait until it takes requests."""
        assert self._process is not None
        await asyncio.to_thread(wait_until_listening, self.port, self._process)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)


class Load:
    """Clients that call again as soon as they have an answer."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.answered = 0
        self.failures: list[str] = []
        self.is_over = False
        message = stateless("tools/call", call("alpha_later", {"text": "hello"}))
        body = encode(message)
        headers = {**JSON_POST, **mirrored(message), "Content-Length": str(len(body)), "Host": "localhost"}
        lines = "".join(f"{name}: {value!s}\r\n" for name, value in headers.items())
        self._request = f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body

    async def run(self) -> None:
        """Call until told to stop."""
        while not self.is_over:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                async with asyncio.timeout(PATIENCE):
                    await self._use(reader, writer)
                writer.close()
            except (OSError, EOFError, TimeoutError) as failure:
                self.failures.append(repr(failure))

    async def _use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_kept = True
        while is_kept and not self.is_over:
            writer.write(self._request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
            body = await reader.readexactly(length)
            if not head.startswith(b"http/1.1 200") or b"hello" not in body:
                self.failures.append((head[:80] + body[:80]).decode("latin-1"))
            self.answered += 1
            is_kept = b"connection: close" not in head

    async def more(self, calls: int) -> None:
        """Wait until so many more calls were answered."""
        wanted = self.answered + calls
        async with asyncio.timeout(PATIENCE):
            while self.answered < wanted:
                await asyncio.sleep(0.01)


@contextmanager
def running(folder: Path) -> Iterator[tuple[list[Replica], int]]:
    """Run two replicas behind HAProxy; gives them, and the port of HAProxy."""
    with ExitStack() as stack:
        redis = stack.enter_context(running_redis(folder))
        # While it drains, /readyz fails and calls are answered: HAProxy turns to the other one meanwhile.
        environment = environment_of(redis, BRIDGEHEAD_DRAIN_SECONDS="1.5")
        replicas = [Replica(folder / str(number), environment) for number in range(2)]
        for replica in replicas:
            stack.callback(replica.kill)
            replica.start()
        addresses = [f"http://127.0.0.1:{replica.port}" for replica in replicas]
        address = stack.enter_context(balanced(folder, addresses))
        yield replicas, int(address.rpartition(":")[2])


async def all_up(port: int, count: int) -> None:
    """Wait until HAProxy sends requests to so many replicas."""
    async with asyncio.timeout(PATIENCE):
        while await count_up(port) < count:
            await asyncio.sleep(0.05)


async def count_up(port: int) -> int:
    """Ask HAProxy how many replicas it takes for ready."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /balancer;csv HTTP/1.0\r\n\r\n")
    page = (await reader.read()).decode()
    writer.close()
    lines = [line.split(",") for line in page.splitlines() if line.startswith("replicas,r")]
    return sum("UP" in line for line in lines)


async def restart_all(folder: Path) -> Load:
    """Restart every replica twice under load, and give what became of the calls."""
    with running(folder) as (replicas, port):
        for replica in replicas:
            await replica.ready()
        await all_up(port, len(replicas))
        load = Load(port)
        clients = [asyncio.create_task(load.run()) for _ in range(CLIENTS)]
        await load.more(CALLS_BETWEEN)
        for replica in replicas * ROUNDS:
            if await replica.end():
                load.failures.append("a replica did not end in good order")
            await load.more(CALLS_BETWEEN)
            replica.start()
            await replica.ready()
            await all_up(port, len(replicas))
            await load.more(CALLS_BETWEEN)
        load.is_over = True
        await asyncio.gather(*clients)
        return load
