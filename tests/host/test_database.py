"""The host's database: audit lines of all replicas, health and metrics, and what happens without it."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bridgehead.commands import db
from bridgehead.host.auth.token_database import TokenDatabase
from bridgehead.host.auth.tokens import create_token
from bridgehead.host.doctor import examine
from bridgehead.runtime.stores.postgres import parse_address
from tests.support.host_server import bearer, hosting
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer
from tests.support.proxy import proxied
from tests.support.waiting import PATIENCE


@pytest.fixture(params=["database_url", "pooled_url"], ids=["postgresql", "pgbouncer"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    found = {"BRIDGEHEAD_DATABASE_URL": request.getfixturevalue(request.param)}
    db.main(["migrate"], found)
    return found


async def stored(url: str) -> list[Any]:
    connection = await asyncpg.connect(parse_address(url).url, statement_cache_size=0)
    try:
        return list(
            await connection.fetch(
                "select bridge, tool, client, outcome, ms, request from host_audit order by id"
            )
        )
    finally:
        await connection.close()


async def test_health_and_metrics_tell_of_the_database(environment: dict[str, str], tmp_path: Path) -> None:
    async with hosting(tmp_path, environment) as host:
        async with asyncio.timeout(PATIENCE):
            while not (await host.page("/readyz"))["stores"]["postgresql"]["up"]:
                await asyncio.sleep(0.01)
        metrics = (await (await host.get("/metrics")).body()).decode()

    assert 'bridgehead_database_up{role="writer"} 1' in metrics


async def test_lines_wait_for_a_database_that_is_gone_and_are_stored_once_when_it_is_back(
    breakable_postgres: PostgresServer, tmp_path: Path
) -> None:
    environment = {"BRIDGEHEAD_DATABASE_URL": breakable_postgres.url}
    await asyncio.to_thread(db.main, ["migrate"], environment)
    async with hosting(tmp_path, environment) as host:
        await host.try_call("/alpha/mcp", "alpha_write")
        await asyncio.to_thread(breakable_postgres.kill)
        statuses = [(await host.try_call("/alpha/mcp", "alpha_write")).status for _ in range(3)]
        async with asyncio.timeout(PATIENCE):
            while (await host.page("/readyz"))["stores"]["postgresql"]["up"]:
                await asyncio.sleep(0.01)
        await asyncio.to_thread(breakable_postgres.start)
        async with asyncio.timeout(PATIENCE):
            while len(await stored(breakable_postgres.url)) < 4:
                await asyncio.sleep(0.02)
    assert len(await stored(breakable_postgres.url)) == 4

    assert statuses == [200, 200, 200]


async def test_the_doctor_says_what_is_shared(environment: dict[str, str], tmp_path: Path) -> None:
    found = await examine({**environment, "BRIDGEHEAD_STATE_DIR": str(tmp_path)})

    [database] = [one for one in found if one.what == "database"]
    assert (database.verdict, "tokens and audit lines" in database.text) == ("right", True)


async def test_without_a_database_the_doctor_says_what_stays_on_this_machine(tmp_path: Path) -> None:
    found = await examine({"BRIDGEHEAD_STATE_DIR": str(tmp_path)})

    [database] = [one for one in found if one.what == "database"]
    assert database.text == "not set: tokens and audit lines are kept on this machine"


async def test_the_doctor_names_a_database_that_is_gone_and_what_to_do(tmp_path: Path) -> None:
    gone = f"postgresql://me:hunter2@127.0.0.1:{free_port()}/team"
    found = await examine({"BRIDGEHEAD_STATE_DIR": str(tmp_path), "BRIDGEHEAD_DATABASE_URL": gone})

    [database] = [one for one in found if one.what == "database"]
    assert (database.verdict, "/team" in database.text, "hunter2" in database.text) == ("wrong", True, False)
    assert "BRIDGEHEAD_DATABASE_URL" in database.advice


async def test_a_slow_database_adds_nothing_to_calls_that_store_no_record(
    database_url: str, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    settings = {"BRIDGEHEAD_DATABASE_URL": database_url, "BRIDGEHEAD_AUTH": "on"}
    await asyncio.to_thread(db.main, ["migrate"], settings)
    entry, secret = create_token("alice", 1_800_000_000.0)
    await asyncio.to_thread(TokenDatabase(database_url).add, entry)
    async with proxied(postgres_server.port) as proxy:
        slow = proxy.through(database_url)
        async with hosting(tmp_path, {**settings, "BRIDGEHEAD_DATABASE_URL": slow}) as host:
            async with asyncio.timeout(PATIENCE):
                while (await host.try_call("/alpha/mcp", "alpha_write", bearer(secret))).status != 200:
                    await asyncio.sleep(0.05)  # the tokens are read
            proxy.delay = 10 * PATIENCE  # whatever waited for an answer would not come back in time
            for _ in range(3):
                for tool in ("alpha_echo", "alpha_write"):
                    answer = await host.try_call("/alpha/mcp", tool, bearer(secret))
                    assert answer.status == 200
                assert (await host.get("/healthz")).status == 200
                await host.page("/readyz")
            unknown = await host.try_call("/alpha/mcp", "alpha_echo", bearer("bh_nobody"))
            assert unknown.status == 401
            proxy.delay = 0.0
            proxy.cut()
            async with asyncio.timeout(PATIENCE):
                while len(await stored(database_url)) < 4:  # what waited is stored after all
                    await asyncio.sleep(0.05)
