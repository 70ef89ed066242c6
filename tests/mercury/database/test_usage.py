"""Usage: what replicas count is in one place, whole and once; the same tests run over SQLite."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest

from bridgehead.commands import db
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.calling.usage import Span, Usage, UsageCounts
from bridgehead.mercury.calling.usage_store import MAX_CLIENTS, OTHER_CLIENTS, UsageStore
from bridgehead.mercury.database.leftovers import Leftovers
from bridgehead.mercury.database.usage import UsageDatabase
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from bridgehead.mercury.usage_command import _read
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.timing import Clock, SystemClock
from tests.mercury.calling.clock import DAY, GivenClock
from tests.mercury.calling.test_usage_store import open_store
from tests.mercury.process import environment
from tests.support.checked import connect
from tests.support.fault_proxy import fault_proxy
from tests.support.postgres_server import PostgresServer
from tests.support.waiting import PATIENCE

SPAN = Span("2026-01-01", "2027-01-01")
NO_FOLDER = Path("there is none")


class Open(Protocol):
    def __call__(self, clock: GivenClock, keep_days: int = 400) -> AbstractAsyncContextManager[Usage]: ...


@asynccontextmanager
async def replica(
    url: str, clock: Clock, keep_days: int = 400, folder: Path = NO_FOLDER
) -> AsyncIterator[Usage]:
    keeper = UsageDatabase(url, lambda: folder, clock, keep_days=keep_days)
    yield Usage(UsageStore(Path, clock, keep_days=1), shared=keeper)
    await keeper.close()


@pytest.fixture(params=["sqlite", "postgresql", "pgbouncer"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the counts of one process of several."""
    if request.param != "sqlite":
        url = request.getfixturevalue("migrated" if request.param == "postgresql" else "pooled_url")
        db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
        return lambda clock, keep_days=400: replica(url, clock, keep_days)

    @asynccontextmanager
    async def of_file(clock: GivenClock, keep_days: int = 400) -> AsyncIterator[Usage]:
        async with open_store(tmp_path, clock, keep_days) as store:
            yield Usage(store)

    return of_file


@pytest.fixture
def migrated(database_url: str) -> str:
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": database_url})
    return database_url


async def test_what_several_count_is_told_by_day_model_and_client(opened: Open) -> None:
    clock = GivenClock()
    async with opened(clock) as one, opened(clock) as other:
        one.count("mercury-2", "me", UsageCounts(calls=2, total_tokens=30, cost_usd=0.1))
        other.count("mercury-2", "you", UsageCounts(calls=1, errors=1, cost_usd=0.2))
        other.count_hit("mercury-2", "me")
        await other.history(SPAN, ())
        clock.time += DAY
        one.count("coder", "me", UsageCounts(calls=1, unpriced=1))
        [total] = await one.history(SPAN, ())
        by_client = {row.client: row.counts.calls for row in await other.history(SPAN, ("client",))}
        by_day = [(row.day, row.model, row.counts.calls) for row in await one.history(SPAN, ("day", "model"))]

    assert total.counts == UsageCounts(5, 1, 1, 0, 0, 30, 0.3, 1)
    assert by_client == {"me": 4, "you": 1}
    assert by_day == [("2026-09-21", "mercury-2", 4), ("2026-09-22", "coder", 1)]


async def test_clients_beyond_the_limit_are_counted_together(opened: Open) -> None:
    async with opened(GivenClock()) as usage:
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
    async with opened(GivenClock()) as usage:
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        usage.count("mercury-2", name, UsageCounts(calls=2))
        usage.count(name, "me", UsageCounts(calls=4))
        [total] = await usage.history(SPAN, ())
        clients = {row.client[:1]: row.counts.calls for row in await usage.history(SPAN, ("client",))}

    assert total.counts.calls == 7
    assert clients == {"m": 5, name[0]: 2}


async def test_days_older_than_what_is_kept_are_forgotten(opened: Open) -> None:
    clock = GivenClock()
    async with opened(clock, keep_days=2) as usage:
        for _ in range(5):
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await usage.today()
            clock.time += DAY
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        found = [row.day for row in await usage.history(SPAN, ("day",))]

    assert found == ["2026-09-24", "2026-09-25", "2026-09-26"]


async def test_what_is_left_is_written_when_a_replica_ends(migrated: str, tmp_path: Path) -> None:
    async with replica(migrated, GivenClock()) as usage:
        usage.count("mercury-2", "me", UsageCounts(calls=3))
    async with replica(migrated, GivenClock()) as other:
        assert (await other.today())["mercury-2"].calls == 3


async def test_a_batch_whose_answer_was_lost_is_added_once(
    migrated: str, postgres_server: PostgresServer
) -> None:
    async with fault_proxy(postgres_server.port) as proxy:
        url = migrated.replace(f":{postgres_server.port}", f":{proxy.port}")
        async with replica(url, GivenClock()) as usage:
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await usage.history(SPAN, ())
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            proxy.cut_answer_to = lambda sent: b"COMMIT" in sent
            async with asyncio.timeout(PATIENCE):
                while (await usage.today())["mercury-2"].calls != 2 or not proxy.cuts:
                    await asyncio.sleep(0.02)
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            after = await usage.today()

    assert after["mercury-2"].calls == 3


async def test_of_two_who_write_at_once_neither_takes_the_others_batch_for_added(
    migrated: str, postgres_server: PostgresServer
) -> None:
    begun = 0

    def is_third_transaction(sent: bytes) -> bool:
        nonlocal begun
        begun += sent.count(b"BEGIN")
        return begun >= 3

    async with fault_proxy(postgres_server.port) as proxy:
        url = migrated.replace(f":{postgres_server.port}", f":{proxy.port}")
        async with replica(url, GivenClock()) as usage:
            await usage.history(SPAN, ())
            proxy.cut_answer_to = is_third_transaction
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            both = [asyncio.create_task(usage.history(SPAN, ())) for _ in range(2)]
            await asyncio.sleep(0)  # what was counted is on its way
            for _ in range(2):
                usage.count("mercury-2", "me", UsageCounts(calls=1))
                await asyncio.gather(*both, usage.history(SPAN, ()), return_exceptions=True)
    async with replica(migrated, GivenClock()) as other:
        [total] = await other.history(SPAN, ())

    assert proxy.cuts == 1
    assert total.counts.calls == 3


async def test_replicas_that_write_at_once_never_wait_in_a_circle(migrated: str) -> None:
    clock = GivenClock()

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
    async with fault_proxy(postgres_server.port) as proxy:
        url = migrated.replace(f":{postgres_server.port}", f":{proxy.port}")
        async with replica(url, GivenClock(), folder=tmp_path) as usage:
            usage.count("mercury-2", "me", UsageCounts(calls=1))
            await usage.history(SPAN, ())
            usage.count("mercury-2", "me", UsageCounts(calls=2, cost_usd=0.1))
            proxy.cut_answer_to = lambda sent: b"COMMIT" in sent  # nobody knows whether it was added
            proxy.is_refusing = True
            with pytest.raises(BridgeError):
                await usage.history(SPAN, ())
            usage.count("mercury-2", "you", UsageCounts(calls=4))
        async with replica(url, GivenClock(), folder=tmp_path):
            pass  # the database is still gone
    kept = sorted((tmp_path / "unwritten-usage").iterdir())
    for _ in range(2):
        async with replica(migrated, GivenClock(), folder=tmp_path) as usage:
            found = {row.client: row.counts.calls for row in await usage.history(SPAN, ("client",))}
            assert found == {"me": 3, "you": 4}

    assert len(kept) == 2
    assert not any(one.exists() for one in kept)


async def test_usage_of_an_earlier_run_that_the_database_refuses_keeps_nobody_else_from_writing(
    migrated: str, tmp_path: Path
) -> None:
    refused = uuid4()
    Leftovers(lambda: tmp_path).keep(refused, {("2026-09-21", "m", "me"): UsageCounts(total_tokens=2**70)})
    async with replica(migrated, GivenClock(), folder=tmp_path) as usage:
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        [total] = await usage.history(SPAN, ())

    assert total.counts.calls == 1
    assert Leftovers(lambda: tmp_path).read().keys() == {refused}


async def test_the_command_reads_the_database(migrated: str, tmp_path: Path) -> None:
    today = GivenClock()
    async with replica(migrated, today) as usage:
        usage.count("mercury-2", "me", UsageCounts(calls=3))
    settings = MercurySettings({"BRIDGEHEAD_DATABASE_URL": migrated, "BRIDGEHEAD_STATE_DIR": str(tmp_path)})

    rows = await asyncio.to_thread(_read, settings, 10_000, ["model"])

    assert [(row.model, row.counts.calls) for row in rows] == [("mercury-2", 3)]


async def test_calls_do_not_wait_for_a_slow_database_and_are_counted_when_it_answers(
    migrated: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    ask = {"messages": [{"role": "user", "content": "Of patience, in 8 words"}]}
    async with Simulator() as api, fault_proxy(postgres_server.port) as proxy:
        slow = migrated.replace(f":{postgres_server.port}", f":{proxy.port}")
        given = environment(api.url, tmp_path, BRIDGEHEAD_DATABASE_URL=slow)
        async with connect(make_bridge(MercurySettings(given))) as client:
            await client.call("mercury_chat_completion", ask)
            await client.call("mercury_usage", {})  # the database is open
            proxy.delay = 10 * PATIENCE  # whatever waited for an answer would not come back in time
            for _ in range(3):
                assert "isError" not in await client.call("mercury_chat_completion", ask)
            proxy.delay = 0.0
            proxy.drop_all()
            async with replica(migrated, SystemClock()) as other, asyncio.timeout(PATIENCE):
                while (await other.today())["mercury-2"].calls != 4:
                    await asyncio.sleep(0.05)
