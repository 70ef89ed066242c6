"""The usage store: shared by processes, bounded, off the event loop, and whole after a kill at any step."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.calling import sqlite_usage
from bridgehead.mercury.calling.budget import Amounts, BudgetLimits
from bridgehead.mercury.calling.sqlite_budget import SqliteBudget
from bridgehead.mercury.calling.sqlite_usage import FILE, MAX_BATCH, SqliteUsage, open_database
from bridgehead.mercury.calling.usage import Key, Usage, UsageCounts
from bridgehead.runtime import events
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.events import Listener
from tests.mercury.calling.books import DAY, NOON, Payer
from tests.support.children import unmeasured
from tests.support.clock import Clock
from tests.support.posix import KILL, is_private
from tests.support.waiting import PATIENCE, until

TODAY = "2026-09-21"
VERSION_1 = """
CREATE TABLE usage (
    day TEXT NOT NULL, model TEXT NOT NULL, client TEXT NOT NULL,
    calls INTEGER NOT NULL, errors INTEGER NOT NULL, cache_hits INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, total_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL, unpriced INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, model, client)
) WITHOUT ROWID;
CREATE TABLE spending (
    day TEXT NOT NULL, client TEXT NOT NULL, committed_usd REAL NOT NULL, PRIMARY KEY (day, client)
) WITHOUT ROWID;
CREATE TABLE clients (day TEXT, client TEXT, PRIMARY KEY (day, client)) WITHOUT ROWID;
CREATE TABLE imported (hash TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO usage VALUES ('2026-09-21', 'mercury-2', 'you', 3, 0, 0, 10, 20, 30, 0.2, 0);
INSERT INTO spending VALUES
    ('2026-09-20', 'you', 0.5), ('2026-09-21', 'you', 0.125), ('2026-09-21', 'they', 0.125);
PRAGMA user_version = 1;
"""
"""The file of version 0.2, with a quarter of a dollar spent today and half of one the day before."""


@asynccontextmanager
async def open_store(folder: Path, clock: Clock, keep_days: int = 400) -> AsyncIterator[SqliteUsage]:
    store = SqliteUsage(lambda: folder, clock, keep_days=keep_days)
    try:
        yield store
    finally:
        await store.close()


def make_payer(store: SqliteUsage, clock: Clock, usd: float) -> Payer:
    return Payer(SqliteBudget(store), clock, BudgetLimits(Amounts(usd)))


def write_version_1(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.executescript(VERSION_1)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        return connection.execute(query).fetchall()


# --- killed at every step ----------------------------------------------------------------------------------

KILLED = """
import asyncio, os, signal, sqlite3, sys
from pathlib import Path

left = 0

def step(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

class Connection(sqlite3.Connection):
    def execute(self, *given):
        step()
        found = super().execute(*given)
        step()
        return found

connect = sqlite3.connect
sqlite3.connect = lambda *given, **more: connect(*given, factory=Connection, **more)

from bridgehead.mercury.calling.usage import Usage, UsageCounts
from bridgehead.mercury.calling.sqlite_usage import SqliteUsage
from tests.support.clock import Clock
from tests.mercury.calling.books import NOON
from tests.mercury.calling.test_sqlite_usage import make_payer

sys.addaudithook(lambda event, _: step() if event in ("os.rename", "os.remove", "open") else None)

async def main(folder, said):
    def say(word):
        os.write(said, word + b" ")

    clock = Clock(NOON)
    store = SqliteUsage(lambda: folder, clock, keep_days=400)
    payer, usage = make_payer(store, clock, 100.0), Usage(store, clock)
    for _ in range(2):
        reservation = await payer.reserve("me", 1.0)
        say(b"reserved")
        usage.count("mercury-2", reservation.client, UsageCounts(calls=1))
        payer.end(reservation, "settled", 0.5)
        await usage.read_today()
        say(b"settled")
    await store.close()
    say(b"closed")

# One process that has loaded everything, and a copy of it for each step: loading takes longer than all else.
for line in sys.stdin:
    folder, _, steps = line.strip().rpartition(" ")
    said = os.open(Path(folder) / "said", os.O_CREAT | os.O_WRONLY)
    child = os.fork()
    if not child:
        left = int(steps)
        asyncio.run(main(Path(folder), said))
        os._exit(0)
    os.close(said)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Killed:
    """Runs the program above over a file of version 1, killed at a step of its way."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Unmeasured: coverage opens files and SQLite itself, which would be steps to be killed at too.
        self._process = subprocess.Popen(
            [sys.executable, "-c", KILLED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=unmeasured(),
        )

    def run(self, steps: int) -> tuple[Path, list[str], int]:
        """Run and kill; gives the folder, what was acknowledged, and the exit status."""
        folder = self._folder / str(steps)
        folder.mkdir()
        write_version_1(folder)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(folder, steps, file=self._process.stdin, flush=True)
        status = int(self._process.stdout.readline())
        return folder, (folder / "said").read_text().split(), status

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def check_what_is_left(folder: Path, acknowledged: list[str]) -> None:
    """Make sure that money which was acknowledged is committed, and that the books agree with each other."""
    with closing(open_database(folder / FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        total = dict(connection.execute("SELECT period || ' ' || payer, committed_usd FROM budget"))
        open_usd, open_sends = connection.execute("SELECT total(usd), count(*) FROM sends").fetchone()
        settled_usd, calls = connection.execute(
            "SELECT total(cost_usd), total(calls) FROM usage WHERE client <> 'you'"
        ).fetchone()
    reserved, settled = acknowledged.count("reserved"), acknowledged.count("settled")
    mine = total.get(f"{TODAY} me", 0.0)
    assert mine == settled_usd + open_usd
    assert reserved <= settled_usd / 0.5 + open_sends <= reserved + 1
    assert settled <= settled_usd / 0.5 <= reserved
    assert settled <= calls <= reserved
    # The other totals have the same money, and what version 1 had spent.
    assert total.get("2026-09 me", 0.0) == mine
    assert (total[f"{TODAY} "], total["2026-09 "]) == (mine + 0.25, mine + 0.75)
    assert (total[f"{TODAY} you"], total["2026-09 you"]) == (0.125, 0.625)


def test_a_kill_at_any_step_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged, steps = [""], 0
    with closing(Killed(tmp_path)) as killed:
        for steps in range(1, 1000):
            folder, acknowledged, status = killed.run(steps)
            check_what_is_left(folder, acknowledged)
            if status == 0:
                break
            assert status == -KILL

    assert acknowledged == ["reserved", "settled"] * 2 + ["closed"]
    assert steps > 40


# --- shared ------------------------------------------------------------------------------------------------

SHARED = """
import asyncio, sys
from pathlib import Path
from bridgehead.mercury.calling.sqlite_usage import SqliteUsage
from bridgehead.mercury.errors import MercuryError
from tests.support.clock import Clock
from tests.mercury.calling.books import NOON
from tests.mercury.calling.test_sqlite_usage import make_payer

async def main():
    clock = Clock(NOON)
    store = SqliteUsage(lambda: Path(sys.argv[1]), clock, keep_days=400)
    payer, granted = make_payer(store, clock, 10.25), 0

    async def ask():
        nonlocal granted
        try:
            await payer.reserve("me", 0.1)
            granted += 1
        except MercuryError:
            pass

    await asyncio.gather(*(ask() for _ in range(60)))
    await store.close()
    print(granted)

asyncio.run(main())
"""


def test_processes_that_begin_at_once_share_one_budget_and_take_over_an_old_file_once(tmp_path: Path) -> None:
    write_version_1(tmp_path)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SHARED, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    ends = [process.communicate(timeout=PATIENCE) for process in processes]

    assert [errors for _, errors in ends] == [""] * 4
    assert sum(int(said) for said, _ in ends) == 100
    committed = "SELECT round(committed_usd, 6) FROM budget WHERE payer = '' ORDER BY period DESC"
    assert rows(tmp_path, committed) == [(10.25,), (0.5,), (10.75,)]


async def test_a_file_of_version_1_keeps_its_counts(tmp_path: Path) -> None:
    write_version_1(tmp_path)
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = await Usage(store, clock).read_today()

    assert usage == {"mercury-2": UsageCounts(3, 0, 0, 10, 20, 30, 0.2)}
    assert rows(tmp_path, "PRAGMA user_version") == [(2,)]
    tables = rows(tmp_path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    assert tables == [("budget",), ("sends",), ("usage",)]


async def test_a_file_that_is_removed_meanwhile_is_made_anew(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        payer = make_payer(store, clock, 1.0)
        await payer.reserve("me", 0.5)
        for path in tmp_path.glob(f"{FILE}*"):
            path.unlink()
        await payer.reserve("me", 0.25)

    assert rows(tmp_path, "SELECT DISTINCT committed_usd FROM budget") == [(0.25,)]


# --- bounded -----------------------------------------------------------------------------------------------


async def test_counts_are_written_by_themselves_and_closing_lets_go_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_usage, "WRITE_SECONDS", 0.01)
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        await store.submit(lambda _: None)
        usage = Usage(store, clock)
        for calls in ([(1,)], [(2,)]):
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await until(lambda calls=calls: rows(tmp_path, "SELECT sum(calls) FROM usage") == calls)  # type: ignore[misc]
        assert (tmp_path / f"{FILE}-wal").exists()

    assert not (tmp_path / f"{FILE}-wal").exists()
    await until(lambda: not [one for one in threading.enumerate() if "mercury-usage" in one.name])


async def test_the_event_loop_goes_on_while_another_process_holds_the_file(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        payer = make_payer(store, clock, 1.0)
        await payer.reserve("me", 0.1)
        holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        reserving = asyncio.create_task(payer.reserve("me", 0.1))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not reserving.done()
        holder.execute("ROLLBACK")  # a loop that waited for the file would never come here
        holder.close()
        await reserving


# --- what cannot be used -----------------------------------------------------------------------------------


async def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{ not a database, and long enough to be looked at } " * 20)
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        payer, usage = make_payer(store, clock, 1.0), Usage(store, clock)
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        with pytest.raises(StorageError, match=FILE):
            await payer.reserve("me", 0.1)
        assert (await usage.read_today())["mercury-2"].calls == 1  # of this process, at least
        (tmp_path / FILE).unlink()
        assert (await usage.read_today())["mercury-2"].calls == 1  # nothing was lost meanwhile

    assert rows(tmp_path, "SELECT sum(calls) FROM usage") == [(1,)]


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("PRAGMA user_version=99")
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        with pytest.raises(StorageError, match="newer version"):
            await make_payer(store, clock, 1.0).reserve("me", 0.1)


async def test_the_file_is_for_its_owner_alone_and_every_commit_is_flushed(tmp_path: Path) -> None:
    async with open_store(tmp_path, Clock(NOON)) as store:
        modes = await store.submit(
            lambda connection: [
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
            ]
        )
        assert all(map(is_private, tmp_path.iterdir()))

    assert modes == ["wal", 2]  # FULL


# --- transactions ------------------------------------------------------------------------------------------


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
            assert f"The usage database {FILE} cannot be used: " in str(one)
            assert str(tmp_path) not in str(one)  # a path is for the log
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


@pytest.mark.parametrize("names_folder", [False, True])
async def test_a_folder_that_cannot_be_made_is_told_and_its_path_is_for_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, names_folder: bool
) -> None:
    def refuse() -> Path:
        denied = PermissionError(13, "Permission denied")
        if names_folder:
            raise StorageError(f"{tmp_path} cannot be made.", next_step="Make it.") from denied
        raise denied

    store = SqliteUsage(refuse, Clock(NOON), keep_days=2)
    with (
        caplog.at_level("ERROR", "bridgehead"),
        pytest.raises(
            StorageError, match=f"The usage database {FILE} cannot be used: Permission denied"
        ) as told,
    ):
        await store.submit(lambda _: None)
    await store.close()
    assert str(tmp_path) not in str(told.value)
    assert list(tmp_path.iterdir()) == []
    (line,) = caplog.records
    assert "PermissionError(13" in str(vars(line))


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


@pytest.mark.parametrize("heals", ["a check", "counts"])
async def test_a_database_that_fails_is_a_problem_until_something_is_written_and_both_are_told_once(
    tmp_path: Path, heals: str
) -> None:
    clock, listener = Clock(NOON), Listener()
    (tmp_path / FILE).mkdir()  # a folder in the place of the file
    events.feed.join(listener)
    try:
        async with open_store(tmp_path, clock) as store:
            usage = Usage(store, clock)
            for _ in range(3):
                with pytest.raises(StorageError, match="cannot be used"):
                    await store.check()
            problem = store.problem
            (tmp_path / FILE).rmdir()
            await usage.read_today()
            assert store.problem == problem, "a read proves nothing"
            if heals == "counts":
                usage.count("mercury-2", "me", ONE_CALL)
                await usage.read_today()
            else:
                await store.check()
            assert store.problem == ""
        told = [(event.type, event.data) for event in await listener.take(99)]
    finally:
        events.feed.leave(listener)

    where = {"bridge": "mercury", "store": "usage"}
    assert "cannot be used" in problem
    assert told == [("store.lost", where | {"says": problem}), ("store.returned", where)]
