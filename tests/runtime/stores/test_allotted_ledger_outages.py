"""The money of all replicas while the database or Redis is gone: only what was allotted is spent."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.commands import db
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores.ledger import SharedLedger
from tests.runtime.stores.test_allotted_ledger import AMOUNT, HEADROOM, committed, opened, reserve
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("_patient")


async def is_granted(ledger: SharedLedger) -> bool:
    try:
        return bool(await reserve(ledger))
    except StorageError:
        return False


async def test_without_the_database_only_what_was_allotted_is_spent_and_nothing_waits_for_it(
    redis_server: RedisServer, breakable_postgres: PostgresServer
) -> None:
    url = breakable_postgres.url
    await asyncio.to_thread(db.main, ["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
    async with opened(redis_server.url, url) as ledger:
        assert await reserve(ledger)
        breakable_postgres.kill()
        count, loop = 0, asyncio.get_running_loop()
        while await is_granted(ledger):
            count += 1
        begin = loop.time()
        with pytest.raises(StorageError, match="cannot be checked, so no money is spent: The database"):
            await reserve(ledger)
        took = loop.time() - begin
        await asyncio.to_thread(breakable_postgres.start)
        async with asyncio.timeout(PATIENCE):
            while not await is_granted(ledger):
                await asyncio.sleep(0.05)

    assert count == round(HEADROOM / AMOUNT)
    assert took < 2, "it is known to be gone"


async def test_a_database_that_does_not_answer_is_waited_for_no_longer_than_a_statement_may_take(
    redis_server: RedisServer, breakable_postgres: PostgresServer
) -> None:
    url = breakable_postgres.url
    await asyncio.to_thread(db.main, ["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
    async with opened(redis_server.url, f"{url}?statement_timeout=500") as ledger:
        assert await reserve(ledger)
        breakable_postgres.pause()
        with pytest.raises(StorageError, match=r"no money is spent: The database did not answer within 0\.5"):
            await reserve(ledger, 0.5)
        assert await reserve(ledger), "what was allotted can still be spent"
        breakable_postgres.resume()


async def test_without_redis_no_money_is_committed(tmp_path: Path, migrated_url: str) -> None:
    with running_redis(tmp_path) as server:
        async with opened(server.url, migrated_url) as ledger:
            await reserve(ledger)
            server.kill()

            with pytest.raises(StorageError, match="cannot be checked, so no money is spent"):
                await reserve(ledger)
            with pytest.raises(StorageError, match="cannot be checked, so no money is spent"):
                await committed(ledger)


async def test_a_redis_that_does_not_say_which_data_it_has_commits_nothing(
    tmp_path: Path, migrated_url: str
) -> None:
    with running_redis(tmp_path) as server:
        server.command("ACL", "SETUSER", "default", "-info")
        async with opened(server.url, migrated_url) as ledger:
            with pytest.raises(StorageError, match="Allow its user the command INFO"):
                await reserve(ledger)
            with pytest.raises(StorageError, match="replication id"):
                await committed(ledger)
