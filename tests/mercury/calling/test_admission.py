"""Admission over replicas: one round trip to Redis lets a call in, and what it took is given back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridgehead.commands import db
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.stores import open_redis
from bridgehead.runtime.stores.redis import Redis
from tests.mercury.process import environment, error_of
from tests.support.checked import CheckedClient, connect
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import FaultProxy, RedisServer, faulty
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, STREAM, PATH = "mercury_chat_completion", "mercury_chat_stream", "/chat/completions"
LIMITED = {
    "MERCURY_BUDGET_USD": "10",
    "MERCURY_CLIENT_BUDGET_USD": "5",
    "RATE_LIMIT_MAX": "100",
    "RATE_LIMIT_INPUT_TOKENS": "1000000",
    "RATE_LIMIT_OUTPUT_TOKENS": "1000000",
    "RATE_LIMIT_SERVER_MAX": "100",
    "RATE_LIMIT_SERVER_INPUT_TOKENS": "1000000",
}
"""Everything that a call can be counted in."""
WAYS = [(CHAT, "bypass"), (CHAT, "use"), (STREAM, "bypass")]
WINDOW = "bridgehead:window:mercury:server"
Opened = Callable[..., AbstractAsyncContextManager[CheckedClient]]


def ask(about: str, cache: str = "bypass", **more: Any) -> dict[str, Any]:
    content = f"Of {about}, in 8 words"
    return {"messages": [{"role": "user", "content": content}], "cache": cache, "max_tokens": 100, **more}


def keys(server: RedisServer, pattern: str) -> set[str]:
    answer = server.command("KEYS", f"bridgehead:{pattern}").decode()
    return {line for line in answer.split("\r\n") if line.startswith("bridgehead:")}


def total(server: RedisServer) -> bytes:
    """Return what everybody has committed of the day's budget."""
    (day,) = [key for key in keys(server, "budget:*-*-*:") if key.count("-") == 2]
    return server.command("GET", day)


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(redis_server: RedisServer) -> AsyncIterator[FaultProxy]:
    async with faulty(redis_server) as one:
        yield one


@pytest.fixture
def opened(api: Simulator, tmp_path: Path, proxy: FaultProxy) -> Opened:
    """Connect to a replica as a client with a token."""

    @asynccontextmanager
    async def connected(**settings: str) -> AsyncIterator[CheckedClient]:
        routes = tmp_path / "routes.toml"
        own = f'[providers.own]\nurl = "{api.url}"\nkey = "sk_of_own"\nrequests_per_minute = 50\n'
        routes.write_text(f'{own}[[routes]]\nmodel = "fast"\nto = ["own/mercury-2"]\n')
        shared = {"BRIDGEHEAD_REDIS_URL": proxy.url, "BRIDGEHEAD_REDIS_SECONDS": "10", **settings}
        given = environment(api.url, tmp_path, MERCURY_ROUTES_FILE=str(routes), **shared)
        async with connect(make_bridge(MercurySettings(given))) as client:
            client.connection.principal = "ada"
            await client.call(CHAT, ask("warmth"))  # prices are known, the ledger is open
            yield client

    return connected


async def settle(proxy: FaultProxy) -> None:
    """Wait until everything is told that nobody waits for."""
    redis = redis_of(proxy)
    async with asyncio.timeout(PATIENCE):
        while await redis.call("KEYS", "bridgehead:budget:reserved:*"):
            await asyncio.sleep(0.01)
    await redis.call("PING")


def redis_of(proxy: FaultProxy) -> Redis:
    """Return the connection that the bridge has open."""
    found = open_redis(MercurySettings({"BRIDGEHEAD_REDIS_URL": proxy.url}))
    assert found is not None
    return found


async def asked_of_api(api: Simulator) -> None:
    await api.requests.until(lambda journal: bool(journal.to(PATH)))


@pytest.mark.parametrize("model", ["mercury-2", "fast"])
@pytest.mark.parametrize(("tool", "cache"), WAYS)
async def test_a_call_waits_for_one_round_trip_whatever_it_counts_in(
    opened: Opened, api: Simulator, proxy: FaultProxy, *, tool: str, cache: str, model: str
) -> None:
    async with opened(**LIMITED) as client:  # the prices of "fast" are not known yet
        await settle(proxy)
        api.requests.clear()
        api.faults.next(Fault(kind="silent", after=0))
        before = redis_of(proxy).pipelines
        call = asyncio.ensure_future(client.call(tool, ask("trips", cache, model=model)))
        await asked_of_api(api)

        assert redis_of(proxy).pipelines - before == 1
        call.cancel()
        await asyncio.wait([call])


@pytest.mark.parametrize(("tool", "cache"), WAYS)
async def test_with_a_database_a_call_waits_for_one_round_trip_to_redis_and_none_to_the_database(
    opened: Opened,
    api: Simulator,
    proxy: FaultProxy,
    breakable_postgres: PostgresServer,
    tool: str,
    cache: str,
) -> None:
    url = breakable_postgres.url
    await asyncio.to_thread(db.main, ["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
    async with opened(**LIMITED, BRIDGEHEAD_DATABASE_URL=url) as client:
        await client.call(tool, ask("first", cache))
        await settle(proxy)
        breakable_postgres.pause()
        api.requests.clear()
        api.faults.next(Fault(kind="silent", after=0))
        before = redis_of(proxy).pipelines
        call = asyncio.ensure_future(client.call(tool, ask("trips", cache)))
        await asked_of_api(api)
        pipelines = redis_of(proxy).pipelines - before
        call.cancel()
        await asyncio.wait([call])
        breakable_postgres.resume()

    assert pipelines == 1


@pytest.mark.parametrize(("tool", "cache"), WAYS)
async def test_an_answer_does_not_wait_for_redis(
    opened: Opened, api: Simulator, proxy: FaultProxy, tool: str, cache: str
) -> None:
    async with opened(**LIMITED) as client:
        api.requests.clear()
        api.faults.next(Fault(delay=0.2))
        call = asyncio.ensure_future(client.call(tool, ask("silence", cache)))
        await asked_of_api(api)
        proxy.fault = "silent"
        answer = await asyncio.wait_for(call, PATIENCE)
        is_still_waited_for = redis_of(proxy).is_up
        proxy.fault = "none"
        proxy.cut()

    assert "isError" not in answer
    assert is_still_waited_for


async def test_nothing_is_asked_of_windows_in_which_nothing_counts(
    opened: Opened, redis_server: RedisServer
) -> None:
    async with opened(RATE_LIMIT_MAX="100") as client:
        await client.call(CHAT, ask("calls"))

    assert keys(redis_server, "window:*") == {
        "bridgehead:window:mercury:client:ada",
        "bridgehead:window:mercury:client:ada:amounts",
    }
    assert redis_server.command("ZCARD", "bridgehead:window:mercury:client:ada") == b":2\r\n"


async def test_without_limits_and_budget_a_call_asks_nothing_of_redis(
    opened: Opened, redis_server: RedisServer
) -> None:
    redis_server.command("CONFIG", "RESETSTAT")
    async with opened() as client:
        await client.call(CHAT, ask("nothing"))

    assert b"eval" not in redis_server.command("INFO", "commandstats")


@pytest.mark.parametrize(("tool", "cache"), WAYS)
async def test_a_call_beyond_the_budget_is_refused_after_one_round_trip(
    opened: Opened, proxy: FaultProxy, redis_server: RedisServer, tool: str, cache: str
) -> None:
    async with opened(**{**LIMITED, "MERCURY_CLIENT_BUDGET_USD": "0.001"}) as client:
        await client.call(tool, ask("first", cache))
        await settle(proxy)
        before = redis_of(proxy).pipelines
        answer = await client.call(tool, ask("money", cache, max_tokens=50_000))

        assert error_of(answer)["code"] == "BUDGET_EXCEEDED"
        assert redis_of(proxy).pipelines - before <= 2, "one to ask, one to tell that nobody works on it"
        await settle(proxy)
        await until(lambda: not keys(redis_server, "flight:*:lock"))


async def test_what_a_refused_call_had_taken_is_given_back(
    opened: Opened, proxy: FaultProxy, redis_server: RedisServer
) -> None:
    async with opened(**{**LIMITED, "RATE_LIMIT_SERVER_MAX": "1"}) as client:
        await settle(proxy)
        before = total(redis_server)
        refused = await client.call(CHAT, ask("room", "use"))
        await settle(proxy)

        assert error_of(refused)["code"] == "LOCAL_RATE_LIMIT"
        assert total(redis_server) == before
        await until(lambda: not keys(redis_server, "flight:*:lock"))


async def test_an_answer_that_another_replica_has_costs_nothing_and_takes_no_room(
    opened: Opened, api: Simulator, proxy: FaultProxy, redis_server: RedisServer
) -> None:
    async with opened(**LIMITED) as one, opened(**LIMITED) as other:
        await one.call(CHAT, ask("sharing", "use"))
        await settle(proxy)
        before = total(redis_server), redis_server.command("ZCARD", WINDOW), len(api.requests.to(PATH))
        answer = await other.call(CHAT, ask("sharing", "use"))
        await settle(proxy)

        assert "isError" not in answer
        assert (
            total(redis_server),
            redis_server.command("ZCARD", WINDOW),
            len(api.requests.to(PATH)),
        ) == before


@pytest.mark.parametrize("cache", ["bypass", "use"])
async def test_money_that_redis_took_without_an_answer_is_given_back_when_it_is_there_again(
    opened: Opened, proxy: FaultProxy, redis_server: RedisServer, cache: str
) -> None:
    async with opened(**{**LIMITED, "BRIDGEHEAD_REDIS_SECONDS": "1"}) as client:
        await settle(proxy)
        before, proxy.fault = total(redis_server), "mute"
        answer = await client.call(CHAT, ask("patience", cache))
        assert error_of(answer)["code"] == "STORAGE"
        await until(lambda: total(redis_server) != before)

        proxy.fault = "none"
        proxy.cut()
        await until(lambda: total(redis_server) == before)
