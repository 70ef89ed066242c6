"""The cluster of a run: replicas, PostgreSQL, Redis, and an upstream that bills and misbehaves."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from bridgehead.host.auth.token_database import TokenDatabase
from bridgehead.host.auth.tokens import create_token
from tests.chaos.checker import Books
from tests.mercury.process import KEY, MODEL
from tests.support import billing_upstream, postgres_server
from tests.support.ports import free_port, wait_until_listening
from tests.support.posix import dying_with_us
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer, running_redis
from tests.support.small_disk import SmallDisk
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE

BUDGET_USD = 0.05
"""Little enough that a whole run reaches it."""
UPSTREAM_FAULTS = ("good", "cost", "500", "503", "silent 5", "reset", "stall", "no usage", "half body")


class Replica:
    """One host as a process, which keeps its port from start to start."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.port = free_port()
        self.log = folder / f"{name}.log"
        self.environment = {**environment, "BRIDGEHEAD_STATE_DIR": str(folder / name)}
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self, **more: str) -> None:
        """Start it, and wait until it takes requests."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(*dying_with_us("KILL"), sys.executable, "-m", "tests.chaos.replica"),
                    *("--port", str(self.port)),
                ],
                cwd=ROOT,
                env={**self.environment, **more},
                stderr=log,
            )
        await asyncio.to_thread(wait_until_listening, self.port, self.process, self.log)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    async def kill(self) -> None:
        """End it as a power cut does."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        await self._wait()

    async def end(self) -> int:
        """End it as a service manager does; return its status."""
        self.send(signal.SIGTERM)
        return await self._wait()

    async def _wait(self) -> int:
        return 0 if self.process is None else await asyncio.to_thread(self.process.wait, PATIENCE)


class Cluster:
    """Everything that a fault can hit, and the books afterwards."""

    def __init__(self, folder: Path, postgres: PostgresServer, redis: RedisServer, url: str) -> None:
        self.folder = folder
        self.postgres = postgres
        self.redis = redis
        self.database_url = url
        self.journal = folder / "bills.jsonl"
        self.replicas: list[Replica] = []
        self.tokens: dict[str, str] = {}
        self.disk: SmallDisk | None = None
        """The state directory of the first replica; None where none can be mounted."""

    def ports(self) -> list[int]:
        """Return where clients reach the replicas."""
        return [replica.port for replica in self.replicas]

    async def read_books(self) -> Books:
        """Read what was stored, charged and committed, past the bridges."""
        connection = await asyncpg.connect(self.database_url, timeout=PATIENCE)
        try:
            records = [row[0] for row in await connection.fetch("select llm from aoc_records")]
            day = datetime.now(UTC).date().isoformat()
            committed = await connection.fetchval(
                "select sum(committed_usd)::float8 from mercury_budget where payer = '' and period like $1",
                f"{day[:4]}-__-__",  # the days, of which there are two around midnight
            )
        finally:
            await connection.close()
        charges: dict[str, float] = defaultdict(float)
        for bill in billing_upstream.read_journal(self.journal):
            charges[bill.call] += bill.charge_usd
        return Books(records, charges, committed or 0.0, BUDGET_USD)


@asynccontextmanager
async def running_cluster(
    folder: Path, seed: int, clients: int, disk: SmallDisk | None
) -> AsyncIterator[Cluster]:
    """Run it while the block runs."""
    with ExitStack() as stack:
        postgres = await asyncio.to_thread(stack.enter_context, postgres_server.running())
        redis = await asyncio.to_thread(stack.enter_context, running_redis(folder))
        url = await asyncio.to_thread(postgres.make_database)
        cluster = Cluster(folder, postgres, redis, url)
        cluster.disk = disk
        port = free_port()
        unwanted = [name for name in billing_upstream.BY_NAME if name not in UPSTREAM_FAULTS]
        left_out = [word for name in unwanted for word in ("--without", name)]
        words = ["-m", "tests.support.billing_upstream", "--port", str(port), "--seed", str(seed)]
        upstream = subprocess.Popen(
            [*dying_with_us("KILL"), sys.executable, *words, "--journal", str(cluster.journal), *left_out],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        stack.callback(upstream.wait)
        stack.callback(upstream.kill)
        (folder / "aoc").mkdir()
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
        environment = {
            **kept,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "AOC_DATA_DIR": str(folder / "aoc"),
            "BRIDGEHEAD_AUTH": "on",
            "BRIDGEHEAD_DATABASE_URL": url,
            "BRIDGEHEAD_REDIS_URL": redis.url,
            "BRIDGEHEAD_STATE_KEYS": "a-key-that-these-replicas-have-in-common",
            "BRIDGEHEAD_PROBE_SECONDS": "2",
            "BRIDGEHEAD_SHUTDOWN_SECONDS": "2",
            "LOG_LEVEL": "warn",
            "MERCURY_API_URL": f"http://127.0.0.1:{port}/v1",
            "MERCURY_API_KEY": KEY,
            "MERCURY_MODEL": MODEL,
            "MERCURY_BUDGET_USD": str(BUDGET_USD),
            "REQUEST_TIMEOUT": "500",
            "MERCURY_IDLE_TIMEOUT": "500",
            "MERCURY_TOTAL_TIMEOUT": "3000",
            "RATE_LIMIT_MAX": "0",
            "RATE_LIMIT_SERVER_MAX": "0",
        }
        migrating = [sys.executable, "-m", "bridgehead", "db", "migrate"]
        await asyncio.to_thread(
            subprocess.run, migrating, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        store = TokenDatabase(url)
        for number in range(clients):
            entry, cluster.tokens[f"client-{number}"] = create_token(f"client-{number}", 0.0)
            await asyncio.to_thread(store.add, entry)
        for number in range(2):
            cluster.replicas.append(Replica(f"replica-{number}", folder, environment))
        if disk is not None:
            cluster.replicas[0].environment["BRIDGEHEAD_STATE_DIR"] = str(disk.path / "state")
        try:
            for replica in cluster.replicas:
                await replica.start()
            yield cluster
        finally:
            for replica in cluster.replicas:
                await replica.kill()
