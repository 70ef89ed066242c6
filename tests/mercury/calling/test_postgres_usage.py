"""Usage: what replicas count is in one place, whole and once; the same tests run over SQLite."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import uuid4

import pytest

from bridgehead.commands import db
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.calling import postgres_budget, sqlite_budget
from bridgehead.mercury.calling.budget import (
    Amounts,
    Budget,
    BudgetLimits,
    BudgetStore,
    ReleasedSends,
    Spending,
    State,
)
from bridgehead.mercury.calling.postgres_budget import PostgresBudget
from bridgehead.mercury.calling.postgres_usage import PostgresUsage
from bridgehead.mercury.calling.sqlite_budget import SqliteBudget
from bridgehead.mercury.calling.usage import MAX_CLIENTS, OTHER_CLIENTS, Span, Usage, UsageCounts, UsageRow
from bridgehead.mercury.calling.usage_spool import UsageSpool
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from bridgehead.mercury.usage_command import _read
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.stores import postgres
from bridgehead.runtime.timing import SystemClock
from tests.mercury.calling.books import DAY, NOON, Payer
from tests.mercury.calling.test_sqlite_usage import open_store
from tests.mercury.process import environment
from tests.support.checked import connect
from tests.support.clock import Clock
from tests.support.postgres_server import PostgresServer
from tests.support.proxy import proxied
from tests.support.waiting import PATIENCE

SPAN = Span("2026-01-01", "2027-01-01")
NO_FOLDER = Path("there is none")
LIMITS, NO_LIMITS = BudgetLimits(Amounts(100.0, 100.0)), BudgetLimits()


class Books(NamedTuple):
    """What one process of several counts and spends."""

    usage: Usage
    store: BudgetStore
    clock: Clock
    release: Callable[[], Awaitable[list[ReleasedSends]]]
    """Releases all that is uncertain."""

    async def send(self, usd: float, state: State, limits: BudgetLimits = LIMITS) -> None:
        """Reserve money for a send, and book how it ended, if it did; a settled one cost half of it."""
        payer = Payer(self.store, self.clock, limits)
        reservation = await payer.reserve("me", usd)
        if state != "open":
            payer.end(reservation, state, usd / 2 if state == "settled" else None)
        await self.spending()  # by then the end is booked

    async def spending(self) -> list[Spending]:
        return (await Budget(self.store, self.clock, LIMITS).spending("me"))[1]


class Open(Protocol):
    def __call__(self, clock: Clock, keep_days: int = 400) -> AbstractAsyncContextManager[Books]: ...


@asynccontextmanager
async def replica(
    url: str, clock: Clock | SystemClock, keep_days: int = 400, folder: Path = NO_FOLDER
) -> AsyncIterator[Usage]:
    database = PostgresUsage(url, lambda: folder, clock, keep_days=keep_days)
    yield Usage(database, clock)
    await database.close()


@pytest.fixture(params=["sqlite", "postgresql", "pgbouncer"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the books of one process of several."""
    if request.param == "sqlite":

        @asynccontextmanager
        async def in_file(clock: Clock, keep_days: int = 400) -> AsyncIterator[Books]:
            async with open_store(tmp_path, clock, keep_days) as store:
                yield Books(
                    Usage(store, clock),
                    SqliteBudget(store),
                    clock,
                    lambda: store.submit(lambda held: sqlite_budget.release_uncertain(held, SPAN)),
                )

        return in_file
    url = request.getfixturevalue("migrated" if request.param == "postgresql" else "pooled_url")
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})

    @asynccontextmanager
    async def in_database(clock: Clock, keep_days: int = 400) -> AsyncIterator[Books]:
        store, database = PostgresBudget(url), await postgres.acquire(url)
        async with replica(url, clock, keep_days) as usage:
            yield Books(
                usage,
                store,
                clock,
                lambda: database.writer.run(lambda held: postgres_budget.release_uncertain(held, SPAN)),
            )
        await store.close()
        await postgres.release(database)

    return in_database


@pytest.fixture
def migrated(database_url: str) -> str:
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": database_url})
    return database_url


async def test_what_several_count_is_told_by_day_model_and_client(opened: Open) -> None:
    clock = Clock(NOON)
    async with opened(clock) as (one, *_), opened(clock) as (other, *_):
        one.count("mercury-2", "me", UsageCounts(calls=2, total_tokens=30, cost_usd=0.1))
        other.count("mercury-2", "you", UsageCounts(calls=1, errors=1, cost_usd=0.2))
        other.count_hit("mercury-2", "me")
        await other.history(SPAN, ())
        clock.advance(DAY)
        one.count("coder", "me", UsageCounts(calls=1, unpriced=1))
        [total] = await one.history(SPAN, ())
        by_client = {row.client: row.counts.calls for row in await other.history(SPAN, ("client",))}
        by_day = [(row.day, row.model, row.counts.calls) for row in await one.history(SPAN, ("day", "model"))]

    assert total.counts == UsageCounts(5, 1, 1, 0, 0, 30, 0.3, 1)
    assert by_client == {"me": 4, "you": 1}
    assert by_day == [("2026-09-21", "mercury-2", 4), ("2026-09-22", "coder", 1)]


async def test_sends_are_told_beside_the_counts_as_settled_uncertain_or_reserved(opened: Open) -> None:
    clock = Clock(NOON)
    async with opened(clock) as books, opened(clock) as (elsewhere, *_):
        await books.send(0.5, "settled")
        await books.send(0.125, "uncertain")
        clock.advance(DAY)
        await books.send(0.25, "uncertain")
        await books.send(2.0, "released")
        await books.send(4.0, "open")
        for _ in range(2):
            await books.send(1.0, "uncertain", NO_LIMITS)
        books.usage.count("mercury-2", "me's editor", UsageCounts(calls=7))
        await books.usage.history(SPAN, ())
        by_day = {row.day: row.counts for row in await elsewhere.history(SPAN, ("day", "client"))}
        [total] = await elsewhere.history(SPAN, ())
        before = await elsewhere.history(Span("2026-01-01", "2026-09-20"), ())

    assert by_day == {
        "2026-09-21": UsageCounts(cost_usd=0.25, uncertain_sends=1, uncertain_usd=0.125),
        "2026-09-22": UsageCounts(calls=7, uncertain_sends=3, uncertain_usd=2.25, reserved_usd=4.0),
    }
    assert total.counts == UsageCounts(
        calls=7, cost_usd=0.25, uncertain_sends=4, uncertain_usd=2.375, reserved_usd=4.0
    )
    assert before == []


async def test_what_is_uncertain_after_a_release_is_told_without_what_was_released(opened: Open) -> None:
    async with opened(Clock(NOON)) as books:
        for usd in (0.25, 0.5):
            await books.send(usd, "uncertain", NO_LIMITS)
        released = await books.release()
        [nothing] = await books.usage.history(SPAN, ()) or [UsageRow(UsageCounts())]
        await books.send(2.0, "uncertain", NO_LIMITS)
        [again] = await books.usage.history(SPAN, ())

    assert [(one.client, one.sends, one.usd) for one in released] == [("me's editor", 2, 0.75)]
    assert nothing.counts == UsageCounts()
    assert again.counts == UsageCounts(uncertain_sends=1, uncertain_usd=2.0)


async def test_clients_beyond_the_limit_are_counted_together(opened: Open) -> None:
    async with opened(Clock(NOON)) as (usage, *_):
        for number in range(MAX_CLIENTS + 50):
            usage.count("mercury-2", f"made-up-{number}", UsageCounts(calls=1))
        found = {row.client: row.counts.calls for row in await usage.history(SPAN, ("client",))}

    assert (len(found), found[OTHER_CLIENTS]) == (MAX_CLIENTS + 1, 50)


@pytest.mark.parametrize(
    "name", ["a\0b", "".join(map(chr, range(0x4E00, 0x4E00 + 5000)))], ids=["NUL", "long"]
)
async def test_a_name_that_a_client_made_up_keeps_nobodys_usage_from_being_written(
    opened: Open, name: str
) -> None:
    async with opened(Clock(NOON)) as (usage, *_):
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        usage.count("mercury-2", name, UsageCounts(calls=2))
        usage.count(name, "me", UsageCounts(calls=4))
        [total] = await usage.history(SPAN, ())
        clients = {row.client[:1]: row.counts.calls for row in await usage.history(SPAN, ("client",))}

    assert total.counts.calls == 7
    assert clients == {"m": 5, name[0]: 2}


async def test_days_older_than_what_is_kept_are_forgotten_and_money_with_its_month(opened: Open) -> None:
    clock = Clock(NOON)
    async with opened(clock, keep_days=2) as books:
        usage = books.usage
        for _ in range(6):
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await books.send(0.25, "uncertain")
            await usage.read_today()
            clock.advance(DAY)
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        counted = [row.day for row in await usage.history(SPAN, ("day",)) if row.counts.calls]
        of_day, of_month = await books.spending()
        assert counted == ["2026-09-25", "2026-09-26", "2026-09-27"]
        assert (of_day.committed, of_month.committed, of_month.uncertain) == (0.0, 1.5, 1.5)

        clock.advance(7 * DAY)
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        left = [row.day for row in await usage.history(SPAN, ("day",))]
        _, of_month = await books.spending()

    assert left == ["2026-10-04"]
    assert (of_month.committed, of_month.uncertain) == (0.0, 0.0)


async def test_what_is_left_is_written_when_a_replica_ends(migrated: str, tmp_path: Path) -> None:
    async with replica(migrated, Clock(NOON)) as usage:
        usage.count("mercury-2", "me", UsageCounts(calls=3))
    async with replica(migrated, Clock(NOON)) as other:
        assert (await other.read_today())["mercury-2"].calls == 3


async def test_a_batch_whose_answer_was_lost_is_added_once(
    migrated: str, postgres_server: PostgresServer
) -> None:
    async with proxied(postgres_server.port) as proxy:
        url = proxy.through(migrated)
        async with replica(url, Clock(NOON)) as usage:
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await usage.history(SPAN, ())
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            proxy.cut_answer_to = lambda sent: b"COMMIT" in sent
            async with asyncio.timeout(PATIENCE):
                while (await usage.read_today())["mercury-2"].calls != 2 or not proxy.cuts:
                    await asyncio.sleep(0.02)
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            after = await usage.read_today()

    assert after["mercury-2"].calls == 3


async def test_of_two_who_write_at_once_neither_takes_the_others_batch_for_added(
    migrated: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    begun = 0

    def is_third_transaction(sent: bytes) -> bool:
        nonlocal begun
        begun += sent.count(b"BEGIN")
        return begun >= 3

    async with proxied(postgres_server.port) as proxy:
        url = proxy.through(migrated)
        # On a busy machine the last write may fail too. Then the spool has it, and the next start adds it.
        async with replica(url, Clock(NOON), folder=tmp_path) as usage:
            await usage.history(SPAN, ())
            proxy.cut_answer_to = is_third_transaction
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            both = [asyncio.create_task(usage.history(SPAN, ())) for _ in range(2)]
            await asyncio.sleep(0)  # what was counted is on its way
            for _ in range(2):
                usage.count("mercury-2", "me", UsageCounts(calls=1))
                await asyncio.gather(*both, usage.history(SPAN, ()), return_exceptions=True)
    async with replica(migrated, Clock(NOON), folder=tmp_path) as other:
        [total] = await other.history(SPAN, ())

    assert proxy.cuts == 1
    assert total.counts.calls == 3


async def test_replicas_that_write_at_once_never_wait_in_a_circle(migrated: str) -> None:
    clock = Clock(NOON)

    async def count(number: int) -> None:
        async with replica(migrated, clock) as usage:
            for turn in range(10):
                models = [f"model-{n}" for n in range(20)]
                for model in models if (number + turn) % 2 else reversed(models):
                    usage.count(model, "me", UsageCounts(calls=1))
                await usage.history(SPAN, ())

    await asyncio.gather(*(count(number) for number in range(4)))

    async with replica(migrated, clock) as usage:
        [total] = await usage.history(SPAN, ())
    assert total.counts.calls == 4 * 10 * 20


async def test_what_a_replica_could_not_write_before_it_ended_is_added_once_by_the_next(
    migrated: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    async with proxied(postgres_server.port) as proxy:
        url = proxy.through(migrated)
        async with replica(url, Clock(NOON), folder=tmp_path) as usage:
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await usage.history(SPAN, ())
            usage.count("mercury-2", "me", UsageCounts(calls=2, cost_usd=0.1))
            proxy.cut_answer_to = lambda sent: b"COMMIT" in sent  # nobody knows whether it was added
            proxy.fault = "refused"
            with pytest.raises(BridgeError):
                await usage.history(SPAN, ())
            usage.count("mercury-2", "you", UsageCounts(calls=4))
        async with replica(url, Clock(NOON), folder=tmp_path):
            pass  # the database is still gone
    kept = sorted((tmp_path / "unwritten-usage").iterdir())
    for _ in range(2):
        async with replica(migrated, Clock(NOON), folder=tmp_path) as usage:
            found = {row.client: row.counts.calls for row in await usage.history(SPAN, ("client",))}
            assert found == {"me": 3, "you": 4}

    assert len(kept) == 2
    assert not any(one.exists() for one in kept)


async def test_a_replica_that_starts_again_days_later_adds_no_batch_twice(
    migrated: str, tmp_path: Path
) -> None:
    batch, spool = uuid4(), UsageSpool(lambda: tmp_path)
    counts = {("2026-09-21", "mercury-2", "me"): UsageCounts(calls=1)}
    spool.keep(batch, counts)
    async with replica(migrated, Clock(NOON), folder=tmp_path) as usage:
        await usage.history(SPAN, ())
    spool.keep(batch, counts)  # as if the answer had been lost
    database = await postgres.acquire(migrated)
    await database.writer.run(
        lambda held: held.execute("update mercury_usage_batches set at = at - interval '3 days'")
    )
    await postgres.release(database)
    async with replica(migrated, Clock(NOON)) as usage:  # another one deletes what is too old
        usage.count("mercury-2", "you", UsageCounts(calls=4))
        await usage.history(SPAN, ())
    async with replica(migrated, Clock(NOON), folder=tmp_path) as usage:
        found = {row.client: row.counts.calls for row in await usage.history(SPAN, ("client",))}

    assert found == {"me": 1, "you": 4}


async def test_usage_of_an_earlier_run_that_the_database_refuses_keeps_nobody_else_from_writing(
    migrated: str, tmp_path: Path
) -> None:
    refused = uuid4()
    UsageSpool(lambda: tmp_path).keep(refused, {("2026-09-21", "m", "me"): UsageCounts(total_tokens=2**70)})
    async with replica(migrated, Clock(NOON), folder=tmp_path) as usage:
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        [total] = await usage.history(SPAN, ())

    assert total.counts.calls == 1
    assert UsageSpool(lambda: tmp_path).read().keys() == {refused}


async def test_the_command_reads_the_database(migrated: str, tmp_path: Path) -> None:
    today = Clock(NOON)
    async with replica(migrated, today) as usage:
        usage.count("mercury-2", "me", UsageCounts(calls=3))
    settings = MercurySettings({"BRIDGEHEAD_DATABASE_URL": migrated, "BRIDGEHEAD_STATE_DIR": str(tmp_path)})

    rows = await asyncio.to_thread(_read, settings, SPAN, ["model"])

    assert [(row.model, row.counts.calls) for row in rows] == [("mercury-2", 3)]


async def test_calls_do_not_wait_for_a_slow_database_and_are_counted_when_it_answers(
    migrated: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    ask = {"messages": [{"role": "user", "content": "Of patience, in 8 words"}]}
    async with Simulator() as api, proxied(postgres_server.port) as proxy:
        slow = proxy.through(migrated)
        given = environment(api.url, tmp_path, BRIDGEHEAD_DATABASE_URL=slow)
        async with connect(make_bridge(MercurySettings(given))) as client:
            await client.call("mercury_chat_completion", ask)
            await client.call("mercury_usage", {})  # the database is open
            proxy.delay = 10 * PATIENCE  # whatever waited for an answer would not come back in time
            for _ in range(3):
                assert "isError" not in await client.call("mercury_chat_completion", ask)
            proxy.delay = 0.0
            proxy.cut()
            async with replica(migrated, SystemClock()) as other, asyncio.timeout(PATIENCE):
                while (await other.read_today())["mercury-2"].calls != 4:
                    await asyncio.sleep(0.05)
