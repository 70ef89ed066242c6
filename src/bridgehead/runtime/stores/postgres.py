"""PostgreSQL: the connections of a process, shared by the host and its bridges, and their failures.

There is one connection to write and one to read. A statement runs within a bounded time or fails as one of
the errors that every bridge knows. A lost connection is reopened in the background with growing pauses;
meanwhile a call waits a moment and then fails at once, so calls never pile up behind a dead database. Nothing
is sent twice here: only the caller knows whether that is safe.

Blocking waits for the database have threads of their own, so a slow database delays only its own callers.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from .. import logs
from ..callers import is_operator
from ..errors import BridgeError, StorageError, TimedOut, Unavailable
from ..metrics import Metrics
from ..timing import Backoff

if TYPE_CHECKING:
    import asyncpg

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Record: TypeAlias = "asyncpg.Record"

T = TypeVar("T")

__all__ = [
    "Address",
    "ConnectionLost",
    "Database",
    "ReconnectingConnection",
    "Unanswered",
    "acquire",
    "load_driver",
    "opened_in_thread",
    "parse_address",
    "release",
]

STATEMENT_SECONDS = 5.0
"""Default limit of a statement, including its wait for the connection."""
CONNECT_SECONDS = 10.0
"""Limit of one attempt to connect, divided among the servers of the address."""
RECONNECTING_SECONDS = 0.05
"""How long a call waits for a connection that is known to be lost and is being reopened."""
CLOSE_SECONDS = 1.0
RECONNECT_BACKOFF = Backoff(base=0.1, limit=5.0)
_CACHED_STATEMENTS = 100
_MAX_THREADS = 8
"""Threads that wait for one database. Few, because its one read connection serves one at a time."""
_SLOW = "it did not answer in time"
_REASONS = {
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has too many connections",
    "42501": "this user lacks a right",
    "58030": "its disk fails",
}
"""The reason that a client may see, by PostgreSQL's error code; the log has the details."""

log = logs.logger("postgres")


class ConnectionLost(Unavailable):
    """The connection died under a statement, which may or may not have been carried out."""

    code = "connection_lost"

    def __init__(self) -> None:
        super().__init__("The connection to the database was lost.", next_step="Try again.", retry_after=1.0)


class Unanswered(TimedOut):
    """A statement was sent and not answered in time; it may or may not have been carried out."""

    code = "unanswered"


class ReconnectingConnection:
    """One connection, opened when it is first used and reopened whenever it is lost."""

    def __init__(
        self,
        role: str,
        connect: Callable[[], Awaitable[Connection]],
        draw: Callable[[], float] = random.random,
        seconds: float = STATEMENT_SECONDS,
    ) -> None:
        self.role = role
        self._seconds = seconds
        self._connect = connect
        self._draw = draw
        self._connection: Connection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        """Set when an attempt to connect has ended, successful or not."""
        self._turn = asyncio.Lock()
        """Held for one `run`: asyncpg refuses a second statement on a busy connection."""
        self._on_open: list[Callable[[Connection], Awaitable[None]]] = []
        self.problem = ""
        """Why there is no connection; empty if there is one or none was needed yet."""
        self.outcomes: dict[str, int] = {"ok": 0, "lost": 0, "refused": 0, "timeout": 0, "failed": 0}
        self.opened = 0
        """How often a connection was opened."""
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and not self._connection.is_closed()

    def when_opened(self, act: Callable[[Connection], Awaitable[None]]) -> None:
        """Run `act` on each new connection before anything else uses it."""
        self._on_open.append(act)

    async def run(self, work: Callable[[Connection], Awaitable[T]], seconds: float | None = None) -> T:
        """Run `work` with exclusive use of the connection.

        Raises `Unavailable`, `TimedOut` or `StorageError`.
        """
        seconds = self._seconds if seconds is None else seconds
        connection: Connection | None = None
        try:
            async with asyncio.timeout(seconds):
                if not self.is_open:
                    await self._wait_until_open()
                async with self._turn:
                    # Only now: the connection may have been lost or replaced during the wait for the lock.
                    connection = self._connection
                    if connection is None or connection.is_closed():
                        raise self._unavailable()  # noqa: TRY301 - the reader follows it to `except` at once
                    result = await work(connection)
        except BridgeError:
            raise
        except Exception as failure:
            raise self._explain(failure, connection, seconds) from failure
        self.outcomes["ok"] += 1
        return result

    async def _wait_until_open(self) -> None:
        # A thread may still use the database after `close`; a connection opened now would never be closed.
        if self._is_closed:
            raise self._unavailable()
        is_known_lost = bool(self.problem)
        self.open()
        # The first connection, or a loss noticed by this very call, gets the whole time limit. A loss that is
        # known gets a moment only, so that calls fail fast while the database is down.
        if not is_known_lost:
            await self._opened.wait()
        else:
            try:
                async with asyncio.timeout(RECONNECTING_SECONDS):
                    await self._opened.wait()
            except TimeoutError:
                raise self._unavailable() from None
        if not self.is_open:
            raise self._unavailable()

    def _unavailable(self) -> Unavailable:
        self.outcomes["refused"] += 1
        return Unavailable(
            f"The database is unavailable{f': {_SLOW}' if self.problem == _SLOW else ''}.",
            next_step="Try again in a moment; the connection is opened again as soon as it can be.",
            retry_after=1.0,
        )

    # --- opening -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start to open a connection, unless there is one or one is being opened."""
        if self._opening is None and not self.is_open and not self._is_closed:
            self._opened.clear()
            self._opening = asyncio.get_running_loop().create_task(self._keep_opening())

    async def _keep_opening(self) -> None:
        attempt = 0
        connection: Connection | None = None
        try:
            while connection is None:
                try:
                    opened = await self._connect()
                    try:
                        async with asyncio.timeout(self._seconds):
                            for act in self._on_open:
                                await act(opened)
                    except BaseException:
                        opened.terminate()
                        raise
                    connection = opened
                except Exception as failure:  # noqa: BLE001 - whatever it is, there is no connection
                    problem = describe(failure)
                    if problem != self.problem:
                        log.warn("the database cannot be reached", role=self.role, problem=problem)
                    self.problem = problem
                    # Wake the calls that waited for this attempt; later ones wait for the next attempt.
                    self._opened.set()
                    self._opened = asyncio.Event()
                    await asyncio.sleep(RECONNECT_BACKOFF.delay(attempt, self._draw))
                    attempt += 1
            if self.problem:
                log.info("the database is up again", role=self.role)
            self._connection, self.problem = connection, ""
            self.opened += 1
            connection.add_termination_listener(
                lambda ended: self.reconnect("the connection was lost") if ended is self._connection else None
            )
            self._opened.set()
        finally:
            self._opening = None

    def reconnect(self, problem: str) -> None:
        """Drop the connection and open another."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self.outcomes["lost"] += 1
        self.problem = problem
        log.warn("a connection to the database was lost", role=self.role, problem=problem)
        connection.terminate()
        self.open()

    async def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
            # The driver closes a half opened connection on its way out, which takes some turns of the loop.
            await asyncio.wait([self._opening], timeout=CLOSE_SECONDS)
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=CLOSE_SECONDS)
            except Exception:  # noqa: BLE001 - it ends either way
                connection.terminate()

    # --- failures ------------------------------------------------------------------------------------------

    def _explain(self, failure: Exception, connection: Connection | None, seconds: float) -> Exception:
        """Return the error for the caller, and drop a connection that can no longer be used.

        `connection` is None if the failure came before the statement was sent.
        """
        import asyncpg

        if isinstance(failure, TimeoutError):
            self.outcomes["timeout"] += 1
            if connection is None:
                # Set a problem, so that the next call does not wait the whole limit for the first connection.
                if not self.is_open:
                    self.problem = self.problem or _SLOW
                return not_in_time(seconds)
            # Drop the connection: a late answer would be taken for that of the next statement.
            self.reconnect(_SLOW)
            return not_in_time(seconds, Unanswered)
        if isinstance(failure, asyncpg.QueryCanceledError | asyncpg.LockNotAvailableError):
            self.outcomes["timeout"] += 1
            log.warn("the database ended a statement", role=self.role, problem=str(failure))
            return TimedOut("The database took too long.", next_step="Try again later.")
        if isinstance(failure, asyncpg.ReadOnlySQLTransactionError):
            # After a failover the old primary is read-only. It certainly stored nothing, so a retry is safe:
            # Unavailable, not ConnectionLost.
            self.reconnect("it is read-only")
            return self._unavailable()
        if isinstance(
            failure,
            OSError
            | asyncpg.PostgresConnectionError
            | asyncpg.InterfaceError
            | asyncpg.InternalClientError
            | asyncpg.AdminShutdownError
            | asyncpg.CrashShutdownError
            | asyncpg.CannotConnectNowError,
        ):
            if connection is not None and connection is self._connection:
                self.reconnect(describe(failure))
            return self._unavailable() if connection is None else ConnectionLost()
        if not isinstance(failure, asyncpg.PostgresError):
            return failure
        self.outcomes["failed"] += 1
        if isinstance(failure, asyncpg.UndefinedTableError | asyncpg.UndefinedColumnError):
            return StorageError(
                "The tables of the database are not those of this version.",
                next_step="Run `bridgehead db migrate`.",
            )
        # The words of PostgreSQL name tables, columns and values: they are for the log alone.
        log.error(
            "the database refused a statement", role=self.role, code=failure.sqlstate, problem=str(failure)
        )
        reason = _REASONS.get(failure.sqlstate or "", f"error {failure.sqlstate}")
        return StorageError(
            f"The database refused it: {reason}.", next_step="Nothing was stored; the log says more."
        )


def not_in_time(seconds: float, kind: type[TimedOut] = TimedOut) -> TimedOut:
    """Return the error for a database that is too slow."""
    return kind(f"The database did not answer within {seconds:g} seconds.", next_step="Try again later.")


def describe(failure: BaseException) -> str:
    """Explain in a few words, without secrets, why there is no connection."""
    if isinstance(failure, TimeoutError):
        return _SLOW
    if isinstance(failure, BridgeError):
        return failure.message.rstrip(".")
    if isinstance(failure, OSError):
        return failure.strerror or str(failure) or "it cannot be reached"
    return (str(failure) or type(failure).__name__).rstrip(".")


class Address(Struct, frozen=True):
    """The address of a database, without the options that are ours and not the driver's."""

    url: str
    is_pooled: bool
    """Whether a pooler in transaction mode is in between: no prepared statements, no LISTEN."""
    seconds: float = STATEMENT_SECONDS
    """Limit of a statement."""
    connect_seconds: float = 0.0
    """Limit of connecting to one server; 0 divides CONNECT_SECONDS."""

    @property
    def servers(self) -> list[str]:
        """One address per server, in order of preference."""
        parts = urlsplit(self.url)
        user, at, hosts = parts.netloc.rpartition("@")
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]

    @property
    def shown(self) -> str:
        """The address without user and password."""
        parts = urlsplit(self.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def parse_address(url: str) -> Address:
    """Parse an address and its options.

    `statement_cache_size=0` means a pooler in transaction mode, `statement_timeout` limits a statement (in
    milliseconds) and `connect_timeout` limits connecting to one server (in seconds).
    """

    def read_number(name: str) -> int:
        text = options.pop(name, "")
        return int(text) if text.isdecimal() else 0

    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    is_pooled = options.pop("statement_cache_size", "") == "0"
    seconds = read_number("statement_timeout") / 1000
    connect_seconds = read_number("connect_timeout")
    plain = urlunsplit(parts._replace(query=urlencode(options)))
    return Address(plain, is_pooled, seconds or STATEMENT_SECONDS, connect_seconds)


class Database:
    """The connections of this process to one database."""

    def __init__(self, url: str, draw: Callable[[], float] = random.random) -> None:
        self.address = parse_address(url)
        seconds = self.address.seconds
        self._servers = self.address.servers
        self._connect_seconds = self.address.connect_seconds or CONNECT_SECONDS / len(self._servers)
        self.writer = ReconnectingConnection("writer", lambda: self._connect("read-write"), draw, seconds)
        self.reader = ReconnectingConnection("reader", lambda: self._connect("any"), draw, seconds)
        self._threads: ThreadPoolExecutor | None = None
        self.users = 0
        self.loop: asyncio.AbstractEventLoop | None = None

    async def _connect(self, attributes: str) -> Connection:
        """Connect to the first server that answers and has the attributes."""
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
        # pgbouncer rejects startup parameters that it does not know.
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
        """Start to open both connections, in the running loop."""
        self.loop = asyncio.get_running_loop()
        self.writer.open()
        self.reader.open()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop of the connections from another thread. Blocks."""
        if self.loop is None:
            work.close()
            raise Unavailable("The database has not been opened yet.", next_step="Try again in a moment.")
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def run_in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a function that blocks on the database in one of its threads, within a statement's limit.

        Not in the loop's default threads: a slow database would occupy all of them.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="postgres")
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
        """The state of the database, in a sentence; only operators see its address and its error message."""
        where = f" at {self.address.shown}" if is_operator.get() else ""
        if self.is_up:
            return f"The database{where} is up."
        problem = self.writer.problem or self.reader.problem or "it is being connected to"
        return f"The database{where} is down{f': {problem}' if where else ''}."

    def count_in(self, metrics: Metrics) -> None:
        """Declare the metrics of the connections."""
        both = (self.writer, self.reader)
        metrics.gauge(
            "bridgehead_database_up",
            "Whether a connection to PostgreSQL is open.",
            lambda: {(connection.role,): float(connection.is_open) for connection in both},
            "role",
        )
        metrics.total(
            "bridgehead_database_statements_total",
            "Statements sent to PostgreSQL, by outcome.",
            lambda: {
                (connection.role, name): n for connection in both for name, n in connection.outcomes.items()
            },
            "role",
            "outcome",
        )
        metrics.total(
            "bridgehead_database_connections_total",
            "Connections to PostgreSQL that were opened.",
            lambda: {(connection.role,): float(connection.opened) for connection in both},
            "role",
        )

    async def close(self) -> None:
        """Close both connections."""
        await asyncio.gather(self.writer.close(), self.reader.close())
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def load_driver() -> Any:
    """Import asyncpg; raise a BridgeError that says how to install it."""
    try:
        import asyncpg
    except ImportError:
        raise BridgeError(
            "BRIDGEHEAD_DATABASE_URL is set, and the PostgreSQL driver is not installed.",
            next_step="Install it with: pip install 'bridgehead[postgres]'",
        ) from None
    return asyncpg


# By loop as well: a connection of asyncpg belongs to the loop that opened it.
_open: dict[tuple[asyncio.AbstractEventLoop, str], Database] = {}
"""Databases in use. The host and its bridges share the two connections of a loop."""


async def acquire(url: str) -> Database:
    """Return the running loop's database, starting it on first use; pass it to `release` afterwards."""
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
    """Open a database for a command without an event loop; a thread runs one."""
    load_driver()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="postgres", daemon=True)
    thread.start()

    def wait(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def end_tasks() -> None:
        # The driver has its own tasks, such as the one that cancels a statement on the server.
        running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if running:
            await asyncio.wait(running, timeout=CLOSE_SECONDS)
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=CLOSE_SECONDS)

    database = wait(acquire(url))
    try:
        yield database
    finally:
        wait(release(database))
        wait(end_tasks())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def release(database: Database) -> None:
    """Undo `acquire`; the last user closes the database."""
    database.users -= 1
    if not database.users:
        for key in [key for key, held in _open.items() if held is database]:
            del _open[key]
        await database.close()
