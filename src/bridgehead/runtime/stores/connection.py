"""Connection: one connection to PostgreSQL, opened again whenever it is lost, and what its failures mean.

A statement runs within a bounded time or fails as one of the errors that every bridge knows. A connection
that is lost is opened again in the background, with growing pauses; meanwhile a call waits a moment and then
fails at once, so that a database that is gone never makes calls pile up. Nothing is sent twice here: only the
caller knows whether that is safe.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from .. import logs
from ..errors import BridgeError, StorageError, TimedOut, Unavailable
from ..timing import Backoff

if TYPE_CHECKING:
    import asyncpg

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
    Record: TypeAlias = asyncpg.Record

T = TypeVar("T")

STATEMENT_SECONDS = 5.0
"""The longest that a statement may take, with its wait for the connection, where the address does not say."""
CONNECT_SECONDS = 10.0
"""The longest that is tried to connect, to all servers together, before it is tried again."""
MOMENT_SECONDS = 0.05
"""What a call may wait for a connection that is being opened again."""
AGAIN = Backoff(base=0.1, limit=5.0)
_SLOW = "it did not answer in time"

log = logs.logger("postgres")


class ConnectionLost(Unavailable):
    """The connection died under a statement; nobody knows whether that was carried out."""

    code = "connection_lost"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The connection to the database was lost: {problem}.", next_step="Try again.", retry_after=1.0
        )


class Unanswered(TimedOut):
    """A statement was sent and not answered in time; nobody knows whether it was carried out."""

    code = "unanswered"


class Line:
    """One connection, opened when it is first used and again whenever it is lost."""

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
        self._turn = asyncio.Lock()
        self._on_open: list[Callable[[Connection], Awaitable[None]]] = []
        self.problem = ""
        """Why there is no connection; nothing where there is one or none was needed yet."""
        self.outcomes: dict[str, int] = {"ok": 0, "lost": 0, "refused": 0, "timeout": 0, "failed": 0}
        self.opened = 0
        """How often a connection was opened."""

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and not self._connection.is_closed()

    def when_opened(self, act: Callable[[Connection], Awaitable[None]]) -> None:
        """Do something with each new connection before anything else uses it."""
        self._on_open.append(act)

    async def run(self, work: Callable[[Connection], Awaitable[T]], seconds: float | None = None) -> T:
        """Do some work with the connection, alone. Raises `Unavailable`, `TimedOut` or `StorageError`."""
        seconds = self._seconds if seconds is None else seconds
        connection: Connection | None = None
        try:
            async with asyncio.timeout(seconds):
                await self._wait_until_open()
                async with self._turn:
                    connection = self._current()
                    found = await work(connection)
        except BridgeError:
            raise
        except Exception as failure:
            raise self._explain(failure, connection, seconds) from failure
        self.outcomes["ok"] += 1
        return found

    def _current(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            raise self._unavailable()
        return self._connection

    async def _wait_until_open(self) -> None:
        if self.is_open:
            return
        is_known_gone = bool(self.problem)
        self.open()
        if not is_known_gone:  # the first connection, or one that was lost without anybody noticing
            await self._opened.wait()
        else:
            try:
                async with asyncio.timeout(MOMENT_SECONDS):
                    await self._opened.wait()
            except TimeoutError:
                raise self._unavailable() from None
        if not self.is_open:
            raise self._unavailable()

    def _unavailable(self) -> Unavailable:
        self.outcomes["refused"] += 1
        return Unavailable(
            f"The database is unavailable: {self.problem or 'the connection was lost'}.",
            next_step="Try again in a moment; the connection is opened again as soon as it can be.",
            retry_after=1.0,
        )

    # --- opening -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to open a connection, unless there is one or one is being opened."""
        if self._opening is None and not self.is_open:
            self._opened.clear()
            self._opening = asyncio.get_running_loop().create_task(self._keep_opening())

    async def _keep_opening(self) -> None:
        attempt = 0
        try:
            while not await self._try_to_open():
                self._opened.set()  # wakes those who waited for the first try
                self._opened = asyncio.Event()
                await asyncio.sleep(AGAIN.delay(attempt, self._draw))
                attempt += 1
        finally:
            self._opening = None

    async def _try_to_open(self) -> bool:
        try:
            connection = await self._connect()
            async with asyncio.timeout(self._seconds):
                for act in self._on_open:
                    await act(connection)
        except Exception as failure:  # noqa: BLE001 - whatever it is, there is no connection
            problem = describe(failure)
            if problem != self.problem:
                log.warn("the database cannot be reached", role=self.role, problem=problem)
            self.problem = problem
            return False
        if self.problem:
            log.info("the database is up again", role=self.role)
        self._connection, self.problem = connection, ""
        self.opened += 1
        connection.add_termination_listener(self._notice_loss)
        self._opened.set()
        return True

    def _notice_loss(self, connection: Any) -> None:
        if connection is self._connection:
            self.lose("the connection was lost")

    def lose(self, problem: str) -> None:
        """Give the connection up, and open another."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self.outcomes["lost"] += 1
        self.problem = problem
        log.warn("a connection to the database was lost", role=self.role, problem=problem)
        connection.terminate()
        self.open()

    # --- failures ------------------------------------------------------------------------------------------

    def _explain(self, failure: Exception, connection: Connection | None, seconds: float) -> Exception:
        """Word a failure for whoever called, and drop a connection that is of no more use."""
        import asyncpg

        if isinstance(failure, TimeoutError):
            self._note_silence(connection)
            return not_in_time(seconds, TimedOut if connection is None else Unanswered)
        if isinstance(failure, asyncpg.QueryCanceledError | asyncpg.LockNotAvailableError):
            self.outcomes["timeout"] += 1
            return TimedOut(f"The database took too long: {failure}.", next_step="Try again later.")
        if isinstance(failure, asyncpg.ReadOnlySQLTransactionError):  # nothing was stored, that is sure
            self.lose("it is read-only")
            return self._unavailable()
        if _ends_connection(failure):
            if connection is not None and connection is self._connection:
                self.lose(describe(failure))
            return self._unavailable() if connection is None else ConnectionLost(describe(failure))
        if isinstance(failure, asyncpg.PostgresError):
            self.outcomes["failed"] += 1
            return _storage_error(failure)
        return failure

    def _note_silence(self, connection: Connection | None) -> None:
        self.outcomes["timeout"] += 1
        if connection is not None:  # what it still answers belongs to nobody
            self.lose(_SLOW)
        elif not self.is_open:  # the first connection: who comes next need not wait for it as long
            self.problem = self.problem or _SLOW

    async def close(self) -> None:
        """End the connection, and do not open another."""
        if self._opening is not None:
            self._opening.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=1.0)
            except Exception:  # noqa: BLE001 - it ends either way
                connection.terminate()


def not_in_time(seconds: float, kind: type[TimedOut] = TimedOut) -> TimedOut:
    """Say that a database is too slow."""
    return kind(f"The database did not answer within {seconds:g} seconds.", next_step="Try again later.")


def _ends_connection(failure: Exception) -> bool:
    """Tell whether a connection is of no more use."""
    import asyncpg

    return isinstance(
        failure,
        OSError
        | asyncpg.PostgresConnectionError
        | asyncpg.InterfaceError
        | asyncpg.InternalClientError
        | asyncpg.AdminShutdownError
        | asyncpg.CrashShutdownError
        | asyncpg.CannotConnectNowError,
    )


def _storage_error(failure: asyncpg.PostgresError) -> StorageError:
    import asyncpg

    if isinstance(failure, asyncpg.UndefinedTableError | asyncpg.UndefinedColumnError):
        return StorageError(
            "The tables of the database are not those of this version.",
            next_step="Run `bridgehead db migrate`.",
        )
    return StorageError(
        f"The database refused it: {failure}.", next_step="Nothing was stored; its log says more."
    )


def describe(failure: BaseException) -> str:
    """Say in a few words why there is no connection, without anything secret."""
    if isinstance(failure, TimeoutError):
        return _SLOW
    if isinstance(failure, BridgeError):
        return failure.message.rstrip(".")
    if isinstance(failure, OSError):
        return failure.strerror or str(failure) or "it cannot be reached"
    return (str(failure) or type(failure).__name__).rstrip(".")
