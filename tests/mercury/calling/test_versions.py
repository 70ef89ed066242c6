"""Budget, rate windows and cache: the same with memory and files as with Redis, and with a database too."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from bridgehead.commands import db
from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits, Reservation
from bridgehead.mercury.calling.limits import Limits
from bridgehead.mercury.database.allotments import AllotmentDatabase
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.stores.allotted_ledger import AllottedLedger
from bridgehead.runtime.stores.ledger import SharedLedger
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.stores.windows import SharedWindows
from bridgehead.runtime.timing import SystemClock
from tests.mercury.calling.clock import GivenClock
from tests.mercury.calling.reserving import reserve
from tests.mercury.calling.test_budget import committed_by
from tests.mercury.calling.test_usage_store import open_store
from tests.mercury.process import BridgeProcess, bridge_process, sharing
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERSIONS = ["local", "redis"]
LEDGERS = [*VERSIONS, "redis and postgresql"]
FAR = float("inf")


@pytest_asyncio.fixture(loop_scope="module", params=VERSIONS)
async def redis(request: pytest.FixtureRequest, redis_server: RedisServer) -> AsyncIterator[Redis | None]:
    """Nothing for the version of one process, or the Redis of all."""
    if request.param == "local":
        yield None
        return
    async with connected(redis_server.url) as found:
        yield found


# --- budget ------------------------------------------------------------------------------------------------


@pytest.fixture(params=LEDGERS)
def make_ledger(
    request: pytest.FixtureRequest, redis_server: RedisServer
) -> Callable[[], SharedLedger | None]:
    """Makes what replicas share; nothing in the version of one process."""
    if request.param == "local":
        return lambda: None
    redis = Redis(redis_server.url, PATIENCE)
    if request.param == "redis":
        return lambda: SharedLedger(redis)
    url = request.getfixturevalue("database_url")
    db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": url})
    return lambda: AllottedLedger(redis, AllotmentDatabase(url))


class Money:
    """A budget with its ledger."""

    def __init__(self, budget: Budget, ledger: SharedLedger | None) -> None:
        self.budget = budget
        self._ledger = ledger

    async def reserve(self, client: str, amount: float) -> Reservation | None:
        return await reserve(self.budget, self._ledger, client, amount)


@pytest_asyncio.fixture(loop_scope="module")
async def money(tmp_path: Path, make_ledger: Callable[[], SharedLedger | None]) -> AsyncIterator[Money]:
    """A dollar a day for everybody, half of it for each client."""
    clock, limits, ledger = GivenClock(), BudgetLimits(Amounts(1.0), Amounts(0.5)), make_ledger()
    async with open_store(tmp_path, clock) as store:
        if ledger is not None:
            await ledger.start()
        yield Money(Budget(store, clock, limits, ledger), ledger)
        if ledger is not None:
            await ledger.stop()


async def comes_to(budget: Budget, dollars: float) -> None:
    async with asyncio.timeout(PATIENCE):
        while await committed_by(budget) != pytest.approx(dollars):
            await asyncio.sleep(0.005)


async def test_a_reservation_beyond_the_budget_is_refused_and_commits_nothing(money: Money) -> None:
    for client in ("ada", "bob"):
        await money.reserve(client, 0.5)
    with pytest.raises(MercuryError, match="BUDGET_USD") as refused:
        await money.reserve("eve", 0.01)

    assert refused.value.code == "BUDGET_EXCEEDED"
    assert await committed_by(money.budget) == pytest.approx(1.0)


async def test_a_client_stays_under_its_own_budget(money: Money) -> None:
    await money.reserve("ada", 0.4)
    with pytest.raises(MercuryError, match="MERCURY_CLIENT_BUDGET_USD"):
        await money.reserve("ada", 0.2)
    await money.reserve("bob", 0.2)

    assert await committed_by(money.budget) == pytest.approx(0.6)


async def test_what_a_call_cost_takes_the_place_of_what_was_reserved(money: Money) -> None:
    held = await money.reserve("ada", 0.5)
    money.budget.settle(held, 0.125)

    await comes_to(money.budget, 0.125)
    await money.reserve("ada", 0.375)


async def test_many_reservations_at_once_never_pass_the_budget(money: Money) -> None:
    asked = [money.reserve(f"client-{n}", 0.03) for n in range(50)]
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(not isinstance(answer, Exception) for answer in answers) == 33
    assert await committed_by(money.budget) == pytest.approx(0.99)


# --- rate windows ------------------------------------------------------------------------------------------


def make_limits(redis: Redis | None, **settings: str) -> Limits:
    given = {"RATE_LIMIT_MAX": "0", "RATE_LIMIT_SERVER_MAX": "0", "RATE_LIMIT_WINDOW": "60000", **settings}
    windows = None if redis is None else SharedWindows(redis, 60.0)
    return Limits(MercurySettings(given), SystemClock(), windows)


async def test_a_client_is_refused_beyond_its_calls_and_others_are_not(redis: Redis | None) -> None:
    limits = make_limits(redis, RATE_LIMIT_MAX="2")
    for _ in range(2):
        await limits.admit_call("ada", FAR)
    with pytest.raises(MercuryError, match="this client is reached; left now: 0 requests") as refused:
        await limits.admit_call("ada", FAR)
    await limits.admit_call("bob", FAR)

    assert refused.value.code == "LOCAL_RATE_LIMIT"
    assert 0 < (refused.value.retry_after or 0) <= 60
    assert (await limits.left("bob"))["client"] == {"requests": 1}


async def test_many_requests_at_once_take_no_more_than_there_is(redis: Redis | None) -> None:
    limits = make_limits(redis, RATE_LIMIT_SERVER_MAX="10")
    asked = [limits.admit_request(f"client-{n % 3}", 1, 1, FAR) for n in range(30)]
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(not isinstance(answer, Exception) for answer in answers) == 10


async def test_tokens_are_held_for_the_worst_case_and_given_back(redis: Redis | None) -> None:
    limits = make_limits(redis, RATE_LIMIT_SERVER_OUTPUT_TOKENS="100", RATE_LIMIT_INPUT_TOKENS="50")
    room = await limits.admit_request("ada", 30, 80, FAR)
    with pytest.raises(MercuryError, match="this server is reached; left now: 20 output tokens"):
        await limits.admit_request("ada", 10, 21, FAR)
    limits.settle(room, 12, 34)
    async with asyncio.timeout(PATIENCE):
        while (await limits.left("ada")) != {"client": {"input_tokens": 38}, "server": {"output_tokens": 66}}:
            await asyncio.sleep(0.005)

    with pytest.raises(MercuryError, match="can need 101 output tokens"):
        await limits.admit_request("ada", 1, 101, FAR)


async def test_while_redis_is_gone_each_replica_counts_for_itself(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as here, connected(server.url) as there:
            one, other = (make_limits(redis, RATE_LIMIT_MAX="3") for redis in (here, there))
            await one.admit_call("ada", FAR)
            await other.admit_call("ada", FAR)
            server.kill()
            for _ in range(2):  # what it let in itself is not forgotten
                await one.admit_call("ada", FAR)
            with pytest.raises(MercuryError, match="this client is reached"):
                await one.admit_call("ada", FAR)

            assert (await other.left("ada"))["client"] == {"requests": 2}


# --- cache -------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="module", params=VERSIONS)
async def caching(
    request: pytest.FixtureRequest, api: Simulator, tmp_path: Path, redis_server: RedisServer
) -> AsyncIterator[BridgeProcess]:
    """A bridge that keeps answers, here or in Redis."""
    shared = sharing(redis_server) if request.param == "redis" else {}
    async with bridge_process(api.url, tmp_path, CACHE_COMPLETIONS="1", **shared) as client:
        yield client


async def test_equal_calls_are_sent_once_and_failures_are_not_kept(
    caching: BridgeProcess, api: Simulator
) -> None:
    ask = {"messages": [{"role": "user", "content": "Of one answer, in 8 words"}]}
    api.faults.next(Fault(status=400))
    failed = await caching.call("mercury_chat_completion", ask)
    api.faults.next(Fault(delay=0.2))
    calls = [caching.start("mercury_chat_completion", ask)[1] for _ in range(5)]
    texts = {(await answer)["result"]["content"][0]["text"] for answer in calls}
    again = await caching.call("mercury_chat_completion", ask)

    assert failed["isError"]
    assert len(api.requests.to("/chat/completions")) == 2
    assert texts == {again["content"][0]["text"]}
