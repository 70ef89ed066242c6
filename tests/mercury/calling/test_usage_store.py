"""The usage store: shared by processes, bounded, off the event loop, and whole after a kill at any step."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.calling import usage_store
from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits, committed_money
from bridgehead.mercury.calling.ledger_import import IMPORTED_FILE, import_ledger
from bridgehead.mercury.calling.usage import Usage, UsageCounts
from bridgehead.mercury.calling.usage_store import (
    FILE,
    MAX_CLIENTS,
    UsageStore,
    Work,
    open_database,
)
from bridgehead.runtime.errors import StorageError
from tests.mercury.calling.clock import DAY, GivenClock
from tests.support.children import unmeasured
from tests.support.posix import KILL, is_private
from tests.support.waiting import PATIENCE, until

LEDGER = {
    "day": "2026-09-21",
    "committed_usd": 0.25,
    "models": {"mercury-2": {"calls": 3, "errors": 0, "cache_hits": 0, "total_tokens": 30, "cost_usd": 0.2}},
}


@asynccontextmanager
async def open_store(folder: Path, clock: GivenClock, keep_days: int = 400) -> AsyncIterator[UsageStore]:
    store = UsageStore(lambda: folder, clock, keep_days=keep_days, on_open=import_ledger)
    try:
        yield store
    finally:
        await store.close()


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(folder / FILE)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


# --- killed at every step ----------------------------------------------------------------------------------

KILLED = """
import asyncio, os, signal, sqlite3, sys
from functools import partial
from pathlib import Path
from typing import Any

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

from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits
from bridgehead.mercury.calling.ledger_import import import_ledger
from bridgehead.mercury.calling.usage import Usage, UsageCounts
from bridgehead.mercury.calling.usage_store import UsageStore
from tests.mercury.calling.clock import GivenClock

sys.addaudithook(lambda event, _: step() if event in ("os.rename", "os.remove", "open") else None)

async def main(folder, said):
    def say(word):
        os.write(said, word + b" ")

    store = UsageStore(lambda: folder, GivenClock(), keep_days=400, on_open=import_ledger)
    budget, usage = Budget(store, GivenClock(), BudgetLimits(Amounts(100.0))), Usage(store)
    for _ in range(2):
        held = await budget.reserve("me", 1.0)
        say(b"held")
        usage.count("mercury-2", "me", UsageCounts(calls=1, cost_usd=0.5))
        budget.settle(held, 0.5)
        await usage.today()
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
    """Runs the program above, killed at a step of its way."""

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
        (folder / "today.json").write_text(json.dumps(LEDGER))
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
    """Make sure that what was acknowledged is there, and the old file counts once."""
    connection = open_database(folder / FILE)
    import_ledger(connection, folder)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        committed = committed_money(connection, "2026-09-21", "2026-09-21")
        calls = connection.execute("SELECT total(calls) FROM usage").fetchone()[0]
    finally:
        connection.close()
    held, settled = acknowledged.count("held"), acknowledged.count("settled")
    assert 0.25 + 0.5 * held <= committed <= 0.25 + 0.5 * settled + 1.0
    assert 3 + settled <= calls <= 3 + held + 1
    assert (folder / IMPORTED_FILE).exists()


def test_a_kill_at_any_step_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged, steps = [""], 0
    with closing(Killed(tmp_path)) as killed:
        for steps in range(1, 1000):
            folder, acknowledged, status = killed.run(steps)
            check_what_is_left(folder, acknowledged)
            if status == 0:
                break
            assert status == -KILL

    assert acknowledged == ["held", "settled"] * 2 + ["closed"]
    assert steps > 40


# --- shared ------------------------------------------------------------------------------------------------

SHARED = """
import asyncio, sys
from functools import partial
from pathlib import Path
from typing import Any
from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits
from bridgehead.mercury.calling.ledger_import import import_ledger
from bridgehead.mercury.calling.usage_store import UsageStore
from bridgehead.mercury.errors import MercuryError
from tests.mercury.calling.clock import GivenClock

async def main():
    store = UsageStore(lambda: Path(sys.argv[1]), GivenClock(), keep_days=400, on_open=import_ledger)
    budget, granted = Budget(store, GivenClock(), BudgetLimits(Amounts(10.25))), 0

    async def ask():
        nonlocal granted
        try:
            await budget.reserve(sys.argv[2], 0.1)
            granted += 1
        except MercuryError:
            pass

    await asyncio.gather(*(ask() for _ in range(60)))
    await store.close()
    print(granted)

asyncio.run(main())
"""


def test_processes_that_begin_at_once_share_one_budget_and_import_the_old_file_once(tmp_path: Path) -> None:
    (tmp_path / "today.json").write_text(json.dumps(LEDGER))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SHARED, str(tmp_path), f"client-{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    ends = [process.communicate(timeout=PATIENCE) for process in processes]

    assert [errors for _, errors in ends] == [""] * 4
    assert sum(int(said) for said, _ in ends) == 100
    assert rows(tmp_path, "SELECT round(sum(committed_usd), 6) FROM spending") == [(10.25,)]


async def test_a_file_that_is_removed_meanwhile_is_made_anew(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(1.0)))
        await budget.reserve("me", 0.5)
        for path in tmp_path.glob(f"{FILE}*"):
            path.unlink()
        await budget.reserve("me", 0.25)

    assert rows(tmp_path, "SELECT committed_usd FROM spending") == [(0.25,)]


# --- bounded -----------------------------------------------------------------------------------------------


async def test_counts_are_written_by_themselves_and_closing_lets_go_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_store, "WRITE_SECONDS", 0.01)
    async with open_store(tmp_path, GivenClock()) as store:
        await store.submit(lambda _: None)
        usage = Usage(store)
        for calls in ([(1,)], [(2,)]):
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await until(lambda calls=calls: rows(tmp_path, "SELECT sum(calls) FROM usage") == calls)  # type: ignore[misc]
        assert (tmp_path / f"{FILE}-wal").exists()

    assert not (tmp_path / f"{FILE}-wal").exists()
    await until(lambda: not [one for one in threading.enumerate() if "mercury-usage" in one.name])


async def test_clients_beyond_the_limit_are_counted_together(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store)
        for number in range(MAX_CLIENTS + 50):
            usage.count("mercury-2", f"made-up-{number}", UsageCounts(calls=1))

    assert rows(tmp_path, "SELECT count(*), sum(calls) FROM usage") == [(MAX_CLIENTS + 1, MAX_CLIENTS + 50)]
    assert ("mercury-2", "(others)", 50) in rows(tmp_path, "SELECT model, client, calls FROM usage")


async def test_days_older_than_what_is_kept_are_forgotten(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock, keep_days=2) as store:
        usage, budget = Usage(store), Budget(store, clock, BudgetLimits(Amounts(1.0)))
        for _ in range(5):
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await budget.reserve("me", 0.1)
            clock.time += DAY
        await usage.today()

    kept = [("2026-09-24",), ("2026-09-25",)]
    assert rows(tmp_path, "SELECT day FROM usage ORDER BY day") == kept
    assert rows(tmp_path, "SELECT day FROM spending ORDER BY day") == kept


async def test_many_reservations_at_once_are_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = 0

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
            nonlocal commits
            commits += statement == "COMMIT"
            return super().execute(statement, parameters)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(100.0)))
        await budget.reserve("me", 0.1)
        before = commits
        await asyncio.gather(*(budget.reserve("me", 0.1) for _ in range(40)))

    assert commits - before <= 2


async def test_what_is_counted_while_a_transaction_is_written_does_not_begin_another(tmp_path: Path) -> None:
    usage = AlwaysMore()
    async with open_store(tmp_path, GivenClock()) as store:
        store.add_source(usage)
        await store.submit(lambda _connection: None)
        await store.submit(lambda _connection: None)

        assert usage.transactions == 2


class AlwaysMore:
    """A source that has something to write whenever it is asked, as under a steady load."""

    def __init__(self) -> None:
        self.transactions = 0

    def take(self) -> tuple[Work[None], Callable[[], None]]:
        self.transactions += 1
        return lambda _connection: None, lambda: None


async def test_the_event_loop_goes_on_while_another_process_holds_the_file(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget = Budget(store, clock, BudgetLimits(Amounts(1.0)))
        await budget.reserve("me", 0.1)
        holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        reserving = asyncio.create_task(budget.reserve("me", 0.1))
        turns, begun = 0, time.monotonic()
        while time.monotonic() - begun < 0.3:
            await asyncio.sleep(0)
            turns += 1
        assert not reserving.done()
        holder.execute("ROLLBACK")
        holder.close()
        assert await reserving is not None

    assert turns > 100


# --- what cannot be used -----------------------------------------------------------------------------------


async def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{ not a database, and long enough to be looked at } " * 20)
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        budget, usage = Budget(store, clock, BudgetLimits(Amounts(1.0))), Usage(store)
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        with pytest.raises(StorageError, match=FILE):
            await budget.reserve("me", 0.1)
        assert (await usage.today())["mercury-2"].calls == 1  # of this process, at least
        (tmp_path / FILE).unlink()
        assert (await usage.today())["mercury-2"].calls == 1  # nothing was lost meanwhile

    assert rows(tmp_path, "SELECT sum(calls) FROM usage") == [(1,)]


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        with pytest.raises(StorageError, match="newer version"):
            await Budget(store, clock, BudgetLimits(Amounts(1.0))).reserve("me", 0.1)


async def test_the_file_is_for_its_owner_alone_and_every_commit_is_flushed(tmp_path: Path) -> None:
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        modes = await store.submit(
            lambda connection: [
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
            ]
        )
        assert all(map(is_private, tmp_path.iterdir()))

    assert modes == ["wal", 2]  # FULL
