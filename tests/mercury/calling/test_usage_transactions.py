"""Transactions of the usage store: what goes into which, what becomes of it, and when the file is opened."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from bridgehead.mercury.calling import usage_store
from bridgehead.mercury.calling.usage import Usage, UsageCounts
from bridgehead.mercury.calling.usage_store import FILE, UsageStore
from bridgehead.runtime.errors import StorageError
from tests.mercury.calling.clock import DAY, GivenClock
from tests.mercury.calling.test_usage_store import open_store, rows
from tests.support.waiting import until

COUNTED = "SELECT sum(calls) FROM usage"
ONE_CALL = UsageCounts(calls=1)


class Opened:
    """A store, how often its file was opened, and every statement since."""

    def __init__(self, folder: Path) -> None:
        self.clock = GivenClock()
        self.times = 0
        self.statements: list[str] = []
        self.store = UsageStore(lambda: folder, self.clock, keep_days=2, on_open=self._note)

    def _note(self, connection: sqlite3.Connection, _folder: Path) -> None:
        self.times += 1
        connection.set_trace_callback(self.statements.append)

    def count(self, beginning: str) -> int:
        return sum(statement.startswith(beginning) for statement in self.statements)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let another process write for a while."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_a_new_day_begins_at_midnight(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        found = []
        for seconds in (0.0, DAY / 2 - 1, 1.0, DAY):
            clock.time += seconds
            found.append(store.today)

    assert found == ["2026-09-21", "2026-09-21", "2026-09-22", "2026-09-23"]


async def test_the_day_is_worked_out_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out: list[float] = []

    class Counted(datetime):
        @classmethod
        def fromtimestamp(cls, timestamp: float, tz: tzinfo | None = None) -> Self:
            worked_out.append(timestamp)
            return super().fromtimestamp(timestamp, tz)

    monkeypatch.setattr(usage_store, "datetime", Counted)
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        for seconds in (0.0, 60.0, DAY, 60.0):
            clock.time += seconds
            assert store.today

    assert len(worked_out) == 2


async def test_the_file_says_which_version_it_is(tmp_path: Path) -> None:
    async with open_store(tmp_path, GivenClock()) as store:
        await store.submit(lambda _: None)

    assert rows(tmp_path, "PRAGMA user_version") == [(1,)]


async def test_the_file_is_opened_once_and_old_days_are_looked_for_once_a_day(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    for _ in range(3):
        await opened.store.submit(lambda _: None)
    assert (opened.times, opened.count("DELETE")) == (1, 3)

    opened.clock.time += DAY
    for _ in range(2):
        await opened.store.submit(lambda _: None)
    assert (opened.times, opened.count("DELETE")) == (1, 6)
    await opened.store.close()


async def test_names_of_clients_are_told_apart_for_a_day(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    usage = Usage(opened.store)
    for client in ("ada", "bob"):
        usage.count("mercury-2", client, ONE_CALL)
        await opened.store.submit(lambda _: None)
        opened.clock.time += DAY
    await opened.store.close()

    assert rows(tmp_path, "SELECT client FROM clients") == [("bob",)]
    assert rows(tmp_path, COUNTED) == [(2,)]


async def test_a_file_that_fails_is_opened_anew_and_everybody_in_the_transaction_hears_of_it(
    tmp_path: Path,
) -> None:
    opened = Opened(tmp_path)

    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    works = [opened.store.submit(work) for work in (fail, lambda _: None)]
    for one in await asyncio.gather(*works, return_exceptions=True):
        assert isinstance(one, StorageError)
        assert f"{tmp_path / FILE} cannot be used: disk I/O error." in str(one)
    await opened.store.submit(lambda _: None)

    assert opened.times == 2
    await opened.store.close()


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    def refuse() -> Path:
        raise PermissionError(13, "Permission denied")

    store = UsageStore(refuse, GivenClock(), keep_days=2)
    with pytest.raises(StorageError, match=f"The usage database {FILE} cannot be used: .*Permission denied"):
        await store.submit(lambda _: None)
    await store.close()
    assert list(tmp_path.iterdir()) == []


async def test_what_is_counted_during_a_transaction_is_written_before_what_is_submitted_after_it(
    tmp_path: Path,
) -> None:
    async with open_store(tmp_path, GivenClock()) as store:
        usage = Usage(store)
        await store.submit(lambda _: None)
        with held(tmp_path):
            first = store.submit(lambda _: None)
            await asyncio.sleep(0.05)
            usage.count("mercury-2", "me", ONE_CALL)
            second = store.submit(lambda connection: connection.execute(COUNTED).fetchone())
        await first

        assert await second == (1,)


async def test_what_is_counted_last_is_written_before_the_file_is_closed(tmp_path: Path) -> None:
    for calls in (1, 2):
        async with open_store(tmp_path, GivenClock()) as store:
            if calls == 2:
                await store.submit(lambda _: None)
            Usage(store).count("mercury-2", "me", ONE_CALL)
        assert not (tmp_path / f"{FILE}-wal").exists()
        assert rows(tmp_path, COUNTED) == [(calls,)]

    await until(lambda: not [one for one in threading.enumerate() if "mercury-usage" in one.name])


async def test_a_transaction_that_is_cancelled_is_nobodys_answer_and_loses_no_count(tmp_path: Path) -> None:
    async with open_store(tmp_path, GivenClock()) as store:
        usage = Usage(store)
        await store.submit(lambda _: None)
        with held(tmp_path):
            usage.count("mercury-2", "me", ONE_CALL)
            waiting = store.submit(lambda _: None)
            committing = store._committing  # noqa: SLF001 - what an ending event loop cancels
            assert committing is not None
            await asyncio.sleep(0.05)
            committing.cancel()
            await asyncio.wait([committing])

        assert committing.cancelled()
        assert waiting.cancelled()
        assert usage.take() is not None  # it has its counts back


async def test_one_who_is_gone_takes_no_answer_from_the_others(tmp_path: Path) -> None:
    async with open_store(tmp_path, GivenClock()) as store:
        gone, stays = store.submit(lambda _: 1), store.submit(lambda _: 2)
        gone.cancel()

        assert await stays == 2


async def test_a_file_that_is_let_go_of_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = 0

    class Connection(sqlite3.Connection):
        def close(self) -> None:
            nonlocal closed
            closed += 1
            super().close()

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    async with open_store(tmp_path, GivenClock()) as store:
        await store.submit(lambda _: None)
        before = closed
        (tmp_path / FILE).unlink()
        await store.submit(lambda _: None)
        assert closed == before + 1

    assert closed == before + 2


async def test_closing_ends_the_thread_and_the_timer(tmp_path: Path) -> None:
    store = UsageStore(lambda: tmp_path, GivenClock(), keep_days=2)
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
