"""PostgreSQL: the connections of a process, shared by the host and its bridges.

There is one to write and one to read. What waits for either of them in a thread has threads of its own, so
that a slow database holds up nobody who does not ask it.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from ..errors import BridgeError, Unavailable
from ..metrics import Metrics
from .connection import (
    CONNECT_SECONDS,
    STATEMENT_SECONDS,
    ConnectionLost,
    Line,
    Unanswered,
    describe,
    log,
    not_in_time,
)

if TYPE_CHECKING:
    import asyncpg

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
    Record: TypeAlias = asyncpg.Record

T = TypeVar("T")

__all__ = [
    "Address",
    "ConnectionLost",
    "Database",
    "Line",
    "Unanswered",
    "acquire",
    "load_driver",
    "opened_in_thread",
    "parse_address",
    "release",
]

_CACHED_STATEMENTS = 100
_MOST_THREADS = 8
"""Threads that wait for one database; its one connection to read answers one of them at a time."""


class Address(Struct, frozen=True):
    """An address of a database, with what is meant for us taken out of it."""

    url: str
    is_pooled: bool
    """Whether a bouncer in transaction mode stands between: no prepared statements, no LISTEN."""
    seconds: float = STATEMENT_SECONDS
    """The longest that a statement may take."""
    connect_seconds: float = 0.0
    """The longest that a connection to one server may take; 0 leaves it to us."""

    @property
    def servers(self) -> list[str]:
        """An address for each server that is named, in their order."""
        parts = urlsplit(self.url)
        user, at, hosts = parts.netloc.rpartition("@")
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]

    @property
    def shown(self) -> str:
        """The address as a person may see it."""
        parts = urlsplit(self.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def parse_address(url: str) -> Address:
    """Read an address.

    `statement_cache_size=0` in it stands for a bouncer in transaction mode, `statement_timeout` limits a
    statement, in milliseconds, and `connect_timeout` the connecting to one server, in seconds.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    is_pooled = options.pop("statement_cache_size", "") == "0"
    seconds = _read_number(options.pop("statement_timeout", "")) / 1000
    connect_seconds = _read_number(options.pop("connect_timeout", ""))
    plain = urlunsplit(parts._replace(query=urlencode(options)))
    return Address(plain, is_pooled, seconds or STATEMENT_SECONDS, connect_seconds)


def _read_number(given: str) -> int:
    return int(given) if given.isdecimal() else 0


class Database:
    """The connections of this process to one database."""

    def __init__(self, url: str, draw: Callable[[], float] = random.random) -> None:
        self.address = parse_address(url)
        seconds = self.address.seconds
        self._servers = self.address.servers
        self._connect_seconds = self.address.connect_seconds or CONNECT_SECONDS / len(self._servers)
        self.writer = Line("writer", lambda: self._connect("read-write"), draw, seconds)
        self.reader = Line("reader", lambda: self._connect("any"), draw, seconds)
        self._threads: ThreadPoolExecutor | None = None
        self.users = 0
        self.loop: asyncio.AbstractEventLoop | None = None

    async def _connect(self, attributes: str) -> Connection:
        """Connect to the first server that is there and will do; one that does not answer is not all."""
        *others, last = self._servers
        for server in others:
            try:
                return await self._connect_to(server, attributes)
            except Exception as failure:  # noqa: BLE001 - whatever it is, the next one may do
                log.debug("a server of the database cannot be used", problem=describe(failure))
        return await self._connect_to(last, attributes)

    async def _connect_to(self, server: str, attributes: str) -> Connection:
        asyncpg = load_driver()
        limit = str(int(self.address.seconds * 1000))
        # A bouncer refuses most of what a connection may ask for at its start.
        bounds = {} if self.address.is_pooled else {"statement_timeout": limit, "lock_timeout": limit}
        connection: Connection = await asyncpg.connect(
            server,
            timeout=self._connect_seconds,
            statement_cache_size=0 if self.address.is_pooled else _CACHED_STATEMENTS,
            server_settings={"application_name": "bridgehead", **bounds},
            target_session_attrs=attributes,
        )
        return connection

    def start(self) -> None:
        """Begin to open both connections, in the loop that runs now."""
        self.loop = asyncio.get_running_loop()
        self.writer.open()
        self.reader.open()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop of the connections, and wait for it in another thread. Blocks."""
        if self.loop is None:
            work.close()
            raise Unavailable("The database has not been opened yet.", next_step="Try again in a moment.")
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def run_in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run what blocks on the database in one of its own threads, within the time of a statement.

        Those of the loop are for everybody: a slow database would take all of them, and calls that never ask
        it would wait.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="postgres")
        loop, context = asyncio.get_running_loop(), copy_context()
        try:
            async with asyncio.timeout(self.address.seconds):
                return await loop.run_in_executor(self._threads, partial(context.run, work, *arguments))
        except TimeoutError:
            raise not_in_time(self.address.seconds) from None

    @property
    def is_up(self) -> bool:
        """Whether both connections are open."""
        return self.writer.is_open and self.reader.is_open

    @property
    def detail(self) -> str:
        """How the database is, in a sentence."""
        if self.is_up:
            return f"The database at {self.address.shown} is up."
        problem = self.writer.problem or self.reader.problem or "it is being connected to"
        return f"The database at {self.address.shown} is down: {problem}."

    def count_in(self, metrics: Metrics) -> None:
        """Show the connections in metrics."""
        lines = (self.writer, self.reader)
        metrics.gauge(
            "bridgehead_database_up",
            "Whether a connection to PostgreSQL is open.",
            lambda: {(line.role,): float(line.is_open) for line in lines},
            "role",
        )
        metrics.total(
            "bridgehead_database_statements_total",
            "Statements sent to PostgreSQL, by outcome.",
            lambda: {(line.role, name): n for line in lines for name, n in line.outcomes.items()},
            "role",
            "outcome",
        )
        metrics.total(
            "bridgehead_database_connections_total",
            "Connections to PostgreSQL that were opened.",
            lambda: {(line.role,): float(line.opened) for line in lines},
            "role",
        )

    async def close(self) -> None:
        """End both connections."""
        await asyncio.gather(self.writer.close(), self.reader.close())
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def load_driver() -> Any:
    """Import the driver, or say how to install it."""
    try:
        import asyncpg
    except ImportError:
        raise BridgeError(
            "BRIDGEHEAD_DATABASE_URL is set, and the PostgreSQL driver is not installed.",
            next_step="Install it with: pip install 'bridgehead[postgres]'",
        ) from None
    return asyncpg


_open: dict[tuple[asyncio.AbstractEventLoop, str], Database] = {}
"""What this process holds open. The host and its bridges share the two connections of a loop."""


async def acquire(url: str) -> Database:
    """Return the database of the running loop, opened where nobody had it yet; `release` gives it back."""
    load_driver()
    key = (asyncio.get_running_loop(), url)
    database = _open.get(key)
    if database is None:
        database = _open[key] = Database(url)
        database.start()
    database.users += 1
    return database


@contextmanager
def opened_in_thread(url: str) -> Iterator[Database]:
    """Open a database for a command that has no event loop: a thread of its own runs one."""
    load_driver()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="postgres", daemon=True)
    thread.start()

    def wait(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    database = wait(acquire(url))
    try:
        yield database
    finally:
        wait(release(database))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def release(database: Database) -> None:
    """Give a database back; the last one closes it."""
    database.users -= 1
    if not database.users:
        for key in [key for key, held in _open.items() if held is database]:
            del _open[key]
        await database.close()
