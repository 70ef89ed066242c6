"""Transactions of the usage store: what goes into which, what becomes of it, and when the file is opened."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.calling import sqlite_usage
from bridgehead.mercury.calling.sqlite_usage import FILE, MAX_BATCH, SqliteUsage
from bridgehead.mercury.calling.usage import Key, Usage, UsageCounts
from bridgehead.runtime.errors import StorageError
from tests.mercury.calling.books import DAY, NOON
from tests.mercury.calling.test_sqlite_usage import make_payer, open_store, rows
from tests.support.clock import Clock
from tests.support.waiting import PATIENCE, until

COUNTED = "SELECT sum(calls) FROM usage"
ONE_CALL = UsageCounts(calls=1)


class Trace:
    """How often a file was opened and closed, and every statement."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.statements: list[str] = []

    def count(self, beginning: str) -> int:
        return sum(statement.startswith(beginning) for statement in self.statements)


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Trace:
    found = Trace()

    class Connection(sqlite3.Connection):
        def __init__(self, *given: Any, **more: Any) -> None:
            found.opened += 1
            super().__init__(*given, **more)

        def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
            found.statements.append(statement)
            return super().execute(statement, parameters)

        def close(self) -> None:
            found.closed += 1
            super().close()

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    return found


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let another process write for a while."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_the_file_is_opened_once_and_old_days_are_looked_for_once_a_day(
    tmp_path: Path, trace: Trace
) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        for _ in range(3):
            await store.submit(lambda _: None)
        assert (trace.opened, trace.count("DELETE")) == (1, 3)
        clock.advance(DAY)
        for _ in range(2):
            await store.submit(lambda _: None)

    assert (trace.opened, trace.count("DELETE")) == (1, 6)


async def test_many_reservations_at_once_are_one_transaction(tmp_path: Path, trace: Trace) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        payer = make_payer(store, clock, 100.0)
        await payer.reserve("me", 0.1)
        before = trace.count("COMMIT")
        await asyncio.gather(*(payer.reserve("me", 0.1) for _ in range(40)))

        assert trace.count("COMMIT") - before <= 2


async def test_a_transaction_has_a_largest_size_and_everybody_has_a_turn(
    tmp_path: Path, trace: Trace
) -> None:
    async with open_store(tmp_path, Clock(NOON)) as store:
        await store.submit(lambda _: None)
        before = trace.count("COMMIT")
        numbers = iter(range(2 * MAX_BATCH + 1))
        works = [store.submit(lambda _: next(numbers)) for _ in range(2 * MAX_BATCH + 1)]

        assert await asyncio.gather(*works) == list(range(2 * MAX_BATCH + 1))
        assert trace.count("COMMIT") - before == 3


class AlwaysMore(Usage):
    """Counts something whenever it is asked what to write, as under a steady load."""

    transactions = 0

    def take_counts(self) -> dict[Key, UsageCounts]:
        self.transactions += 1
        self.count("mercury-2", "me", ONE_CALL)
        taken = super().take_counts()
        self.count("mercury-2", "me", ONE_CALL)
        return taken


async def test_what_is_counted_while_a_transaction_is_written_does_not_begin_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_usage, "WRITE_SECONDS", PATIENCE)
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = AlwaysMore(store, clock)
        for _ in range(2):
            await store.submit(lambda _: None)

        assert usage.transactions == 2


async def test_a_file_that_fails_is_opened_anew_and_everybody_in_the_transaction_hears_of_it(
    tmp_path: Path, trace: Trace
) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    async with open_store(tmp_path, Clock(NOON)) as store:
        works = [store.submit(work) for work in (fail, lambda _: None)]
        for one in await asyncio.gather(*works, return_exceptions=True):
            assert isinstance(one, StorageError)
            assert f"{tmp_path / FILE} cannot be used: disk I/O error." in str(one)
        await store.submit(lambda _: None)

        assert trace.opened == 2


async def test_a_fault_of_ours_in_a_transaction_leaves_nobody_waiting_and_loses_no_count(
    tmp_path: Path,
) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise OverflowError("Python int too large to convert to SQLite INTEGER")

    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock)
        usage.count("mercury-2", "me", ONE_CALL)
        works = [store.submit(work) for work in (fail, lambda _: None)]
        async with asyncio.timeout(PATIENCE):
            for one in await asyncio.gather(*works, return_exceptions=True):
                assert isinstance(one, OverflowError)

        assert (await usage.read_today())["mercury-2"].calls == 1


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    def refuse() -> Path:
        raise PermissionError(13, "Permission denied")

    store = SqliteUsage(refuse, Clock(NOON), keep_days=2)
    with pytest.raises(StorageError, match=f"The usage database {FILE} cannot be used: .*Permission denied"):
        await store.submit(lambda _: None)
    await store.close()
    assert list(tmp_path.iterdir()) == []


async def test_what_is_counted_during_a_transaction_is_written_before_what_is_submitted_after_it(
    tmp_path: Path,
) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock)
        await store.submit(lambda _: None)
        with held(tmp_path):
            first = store.submit(lambda _: None)
            for _ in range(3):  # until the first transaction has been handed to the thread
                await asyncio.sleep(0)
            usage.count("mercury-2", "me", ONE_CALL)
            second = store.submit(lambda connection: connection.execute(COUNTED).fetchone())
        await first

        assert await second == (1,)


async def test_what_is_counted_last_is_written_before_the_file_is_closed(tmp_path: Path) -> None:
    for calls in (1, 2):
        clock = Clock(NOON)
        async with open_store(tmp_path, clock) as store:
            if calls == 2:
                await store.submit(lambda _: None)
            Usage(store, clock).count("mercury-2", "me", ONE_CALL)
        assert not (tmp_path / f"{FILE}-wal").exists()
        assert rows(tmp_path, COUNTED) == [(calls,)]

    await until(lambda: not [one for one in threading.enumerate() if "mercury-usage" in one.name])


async def test_one_who_is_gone_takes_no_answer_from_the_others(tmp_path: Path) -> None:
    async with open_store(tmp_path, Clock(NOON)) as store:
        gone, stays = store.submit(lambda _: 1), store.submit(lambda _: 2)
        gone.cancel()

        assert await stays == 2


async def test_a_file_that_is_let_go_of_is_closed(tmp_path: Path, trace: Trace) -> None:
    async with open_store(tmp_path, Clock(NOON)) as store:
        await store.submit(lambda _: None)
        (tmp_path / FILE).unlink()
        await store.submit(lambda _: None)
        assert (trace.opened, trace.closed) == (2, 1)

    assert trace.closed == 2


async def test_closing_ends_the_thread_and_the_timer(tmp_path: Path) -> None:
    store = SqliteUsage(lambda: tmp_path, Clock(NOON), keep_days=2)
    store.write_soon()
    timer = store._timer  # noqa: SLF001
    assert timer is not None
    await store.submit(lambda _: None)
    assert timer.cancelled()
    thread = store._thread  # noqa: SLF001
    assert thread is not None
    assert [one for one in threading.enumerate() if "mercury-usage" in one.name]
    await store.close()

    with pytest.raises(RuntimeError, match="after shutdown"):
        thread.submit(print)
