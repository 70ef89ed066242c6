"""Rate limits: of one client, of the whole server and of a provider, on requests and on tokens.

What one process and what several replicas do is one suite, which runs with windows in memory and in Redis.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio

from bridgehead.mercury.calling import rate_limits
from bridgehead.mercury.calling.call import CONNECTION
from bridgehead.mercury.calling.rate_limits import RateAmounts, RateLimits, Scope, WindowEntries
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.stores.rate_windows import Asked, SharedWindows
from bridgehead.runtime.stores.redis import Redis
from bridgehead.runtime.timing import SystemClock
from tests.mercury.process import bridge_process
from tests.runtime.stores.test_redis import connected
from tests.support.clock import Clock
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of limits, in 8 words"}]}
HOUR = 3600.0
FAR = float("inf")


# --- through the bridge ------------------------------------------------------------------------------------


async def test_over_the_limit_of_a_client_a_call_is_refused_with_the_time_to_wait(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_MAX="2", RATE_LIMIT_WINDOW="3600000") as client:
        for _ in range(2):
            await client.call(CHAT, ASK)
        error = await client.error(CHAT, ASK)
        left = (await client.call("mercury_usage"))["structuredContent"]["limits_left"]

    assert (error["type"], error["code"]) == ("rate_limit", "LOCAL_RATE_LIMIT")
    assert HOUR / 2 < error["retry_after"] <= HOUR
    assert left["client"] == {"requests": 0}
    assert len(api.requests.to("/chat/completions")) == 2


async def test_the_limit_of_the_whole_server_counts_every_send_and_that_of_a_client_every_call(
    api: Simulator, tmp_path: Path
) -> None:
    api.faults.next(Fault(status=503), Fault(status=503))
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_MAX="9", RATE_LIMIT_SERVER_MAX="3") as client:
        await client.call(CHAT, ASK)
        error = await client.error(CHAT, ASK)
        left = (await client.call("mercury_usage"))["structuredContent"]["limits_left"]

    assert (error["type"], error["code"]) == ("rate_limit", "LOCAL_RATE_LIMIT")
    assert "this server" in error["message"]
    assert left == {"client": {"requests": 8}, "server": {"requests": 0}}
    assert len(api.requests.to("/chat/completions")) == 3


async def test_calls_wait_for_room_if_the_settings_allow_it(api: Simulator, tmp_path: Path) -> None:
    settings = {"RATE_LIMIT_MAX": "2", "RATE_LIMIT_WINDOW": "200", "RATE_LIMIT_WAIT_MS": "60000"}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        answers = [client.start(CHAT, ASK)[1] for _ in range(5)]
        results = [(await answer)["result"] for answer in answers]

    assert not any("isError" in result for result in results)


async def test_tokens_of_answers_are_taken_for_the_worst_case_and_given_back(
    api: Simulator, tmp_path: Path
) -> None:
    settings = {"RATE_LIMIT_SERVER_OUTPUT_TOKENS": "100", "RATE_LIMIT_WINDOW": "3600000"}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        too_much = await client.error(CHAT, {**ASK, "max_tokens": 101})
        no_end = await client.error(CHAT, ASK)
        for _ in range(3):  # eight tokens each, though sixty are taken
            assert "isError" not in await client.call(CHAT, {**ASK, "max_tokens": 60})
        full = await client.error(CHAT, {**ASK, "max_tokens": 90})
        left = (await client.call("mercury_usage"))["structuredContent"]["limits_left"]["server"]

    assert [error["code"] for error in (too_much, no_end)] == ["OVER_RATE_LIMIT"] * 2
    assert (full["type"], full["code"]) == ("rate_limit", "LOCAL_RATE_LIMIT")
    assert left == {"output_tokens": 100 - 3 * 8}


async def test_tokens_of_prompts_are_limited_for_each_client(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_INPUT_TOKENS="200") as client:
        assert "isError" not in await client.call(CHAT, ASK)
        error = await client.error(CHAT, {"messages": [{"role": "user", "content": "word " * 100}]})

    assert error["code"] == "OVER_RATE_LIMIT"
    assert "this client" in error["message"]


async def test_a_send_that_the_api_refused_gives_its_tokens_back(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=400))
    settings = {"RATE_LIMIT_OUTPUT_TOKENS": "100", "RATE_LIMIT_WINDOW": "3600000"}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        await client.error(CHAT, {**ASK, "max_tokens": 100})
        assert "isError" not in await client.call(CHAT, {**ASK, "max_tokens": 100})


# --- the same in memory and in Redis -----------------------------------------------------------------------


def make_limits(redis: Redis | None, clock: Clock | None = None, /, **settings: str) -> RateLimits:
    """Make the limits of one replica: those that are named, in windows of an hour."""
    none = {"RATE_LIMIT_MAX": "0", "RATE_LIMIT_SERVER_MAX": "0", "RATE_LIMIT_WINDOW": "3600000"}
    windows = None if redis is None else SharedWindows(redis)
    return RateLimits(MercurySettings({**none, **settings}), clock or SystemClock(), windows)


def make_provider(requests_per_minute: int) -> Scope:
    return Scope(
        "the provider local", RateAmounts(requests_per_minute), 60.0, "provider:local", "its setting"
    )


async def take(
    limits: RateLimits,
    account: str = "ada",
    input_tokens: int = 1,
    output_tokens: int | None = 1,
    *,
    provider: Scope | None = None,
    is_first: bool = True,
    deadline: float = FAR,
    **patience: bool,
) -> WindowEntries | None:
    return await limits.take(
        account,
        provider,
        is_first=is_first,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        deadline=deadline,
        **patience,
    )


async def comes_to(limits: RateLimits, client: dict[str, int], server: dict[str, int]) -> None:
    """Wait until so much is left: nobody waits for a correction."""
    async with asyncio.timeout(PATIENCE):
        while await limits.left("ada") != {"client": client, "server": server}:
            await asyncio.sleep(0.005)


Make = Callable[..., RateLimits]


@pytest_asyncio.fixture(loop_scope="module", params=["local", "redis"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Makes limits over windows of this process, or over those of all replicas."""
    if request.param == "local":
        yield lambda **settings: make_limits(None, **settings)
        return
    async with connected(request.getfixturevalue("redis_server").url) as redis:
        yield lambda **settings: make_limits(redis, **settings)


async def test_a_client_is_refused_beyond_its_requests_and_others_are_not(make: Make) -> None:
    limits = make(RATE_LIMIT_MAX="2")
    for _ in range(2):
        await take(limits, "ada")
    with pytest.raises(MercuryError, match="this client is reached; left now: 0 requests") as refused:
        await take(limits, "ada")
    await take(limits, "bob")

    assert refused.value.code == "LOCAL_RATE_LIMIT"
    assert HOUR / 2 < (refused.value.retry_after or 0) <= HOUR
    assert "or raise the RATE_LIMIT settings" in refused.value.next_step
    assert await limits.left("ada") == {"client": {"requests": 0}, "server": {}}
    assert await limits.left("bob") == {"client": {"requests": 1}, "server": {}}


async def test_a_batch_leaves_a_client_a_fifth_of_its_calls(make: Make) -> None:
    limits = make(RATE_LIMIT_MAX="10")
    for _ in range(8):
        await take(limits, is_patient=True)
    with pytest.raises(MercuryError, match="A rate limit of batches is reached; left now: 0 requests"):
        await take(limits, is_patient=True)
    await take(limits, is_patient=True, is_first=False)  # another try of a call that was counted
    for _ in range(2):
        await take(limits)

    with pytest.raises(MercuryError, match="A rate limit of this client is reached; left now: 0 requests"):
        await take(limits)


async def test_the_server_counts_all_sends_and_a_client_only_the_first_of_each_call(make: Make) -> None:
    limits = make(RATE_LIMIT_MAX="5", RATE_LIMIT_SERVER_MAX="5")
    await take(limits)
    for _ in range(2):
        await take(limits, is_first=False)

    assert await limits.left("ada") == {"client": {"requests": 4}, "server": {"requests": 2}}


async def test_many_sends_at_once_take_no_more_than_there_is(make: Make) -> None:
    limits = make(RATE_LIMIT_SERVER_MAX="10")
    asked = [take(limits, f"client-{n % 3}") for n in range(30)]
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(isinstance(answer, WindowEntries) for answer in answers) == 10
    assert sum(isinstance(answer, MercuryError) for answer in answers) == 20


async def test_tokens_are_taken_for_the_worst_case_and_corrected_while_a_request_stays_one(
    make: Make,
) -> None:
    limits = make(
        RATE_LIMIT_INPUT_TOKENS="50", RATE_LIMIT_SERVER_MAX="9", RATE_LIMIT_SERVER_OUTPUT_TOKENS="100"
    )
    entries = await take(limits, "ada", 30, 80)
    await comes_to(limits, {"input_tokens": 20}, {"requests": 8, "output_tokens": 20})
    with pytest.raises(MercuryError, match="this server is reached"):
        await take(limits, "ada", 10, 21)
    await comes_to(limits, {"input_tokens": 20}, {"requests": 8, "output_tokens": 20})

    limits.correct(entries, 12, 34)
    await comes_to(limits, {"input_tokens": 38}, {"requests": 8, "output_tokens": 66})
    limits.correct(entries, 0, 0)
    await comes_to(limits, {"input_tokens": 50}, {"requests": 8, "output_tokens": 100})


async def test_the_limit_in_the_way_is_named_with_what_is_left_of_each_of_its_amounts(make: Make) -> None:
    limits = make(
        RATE_LIMIT_INPUT_TOKENS="50",
        RATE_LIMIT_OUTPUT_TOKENS="60",
        RATE_LIMIT_SERVER_MAX="9",
        RATE_LIMIT_SERVER_OUTPUT_TOKENS="100",
    )
    await take(limits, "ada", 45, 53)

    with pytest.raises(MercuryError, match=r"this client is .* now: 5 input tokens, 7 output tokens"):
        await take(limits, "ada", 6, 1)
    with pytest.raises(MercuryError, match=r"this server is .* now: 8 requests, 47 output tokens"):
        await take(limits, "bob", 1, 48)


@pytest.mark.parametrize(("amount", "need"), [(1001, "1,001"), (None, "any number of")])
async def test_what_can_never_have_room_is_refused_for_good(
    make: Make, amount: int | None, need: str
) -> None:
    limits = make(RATE_LIMIT_OUTPUT_TOKENS="1000")
    with pytest.raises(MercuryError, match=f"need {need} output tokens, and this client may use 1,000") as no:
        await take(limits, "ada", 1, amount)

    assert (no.value.code, no.value.retry_after) == ("OVER_RATE_LIMIT", None)
    await take(limits, "ada", 1, 1000)


async def test_a_provider_has_a_limit_of_its_own_also_if_nothing_else_is_limited(make: Make) -> None:
    limits, provider = make(), make_provider(2)
    for account in ("ada", "bob"):
        await take(limits, account, provider=provider)
    with pytest.raises(MercuryError, match="the provider local is reached; left now: 0 requests") as refused:
        await take(limits, provider=provider)

    assert "or raise its setting" in refused.value.next_step
    assert 0 < (refused.value.retry_after or 0) <= 60
    assert await take(limits) is None


async def test_what_a_provider_has_no_room_for_takes_nothing_of_the_client(make: Make) -> None:
    limits, provider = make(RATE_LIMIT_MAX="5", RATE_LIMIT_SERVER_MAX="5"), make_provider(1)
    for _ in range(2):
        await asyncio.gather(take(limits, provider=provider), return_exceptions=True)

    assert await limits.left("ada") == {"client": {"requests": 4}, "server": {"requests": 4}}


async def test_of_several_limits_in_the_way_the_one_that_takes_longest_is_told(make: Make) -> None:
    limits, provider = make(RATE_LIMIT_SERVER_MAX="1"), make_provider(1)
    await take(limits, provider=provider)
    with pytest.raises(MercuryError, match="this server is reached") as refused:
        await take(limits, provider=provider)

    assert HOUR / 2 < (refused.value.retry_after or 0) <= HOUR


async def test_sends_wait_for_room_if_the_settings_allow_it(make: Make) -> None:
    limits = make(RATE_LIMIT_MAX="1", RATE_LIMIT_WINDOW="20", RATE_LIMIT_WAIT_MS="3600000")
    found = await asyncio.gather(*(take(limits) for _ in range(5)))

    assert all(isinstance(entries, WindowEntries) for entries in found)


@pytest.mark.parametrize(("wait", "deadline"), [("1000", FAR), ("7200000", 0.0)])
async def test_a_send_is_refused_if_there_is_no_room_in_the_time_it_has(
    make: Make, wait: str, deadline: float
) -> None:
    limits = make(RATE_LIMIT_MAX="1", RATE_LIMIT_WAIT_MS=wait)
    await take(limits)

    with pytest.raises(MercuryError, match="this client is reached"):
        await take(limits, deadline=deadline)


async def test_limits_that_are_off_hold_nobody(make: Make) -> None:
    off = make(RATE_LIMIT_ENABLED="0", RATE_LIMIT_MAX="1", RATE_LIMIT_OUTPUT_TOKENS="1")
    for _ in range(3):
        assert await take(off, "ada", 100, 100) is None
    off.correct(None, 1, 1)

    assert await off.left("ada") == {}


# --- as one process counts ---------------------------------------------------------------------------------


async def test_the_longest_answer_has_to_be_known_only_if_tokens_of_answers_are_limited() -> None:
    one = {"RATE_LIMIT_OUTPUT_TOKENS": "1"}
    assert make_limits(None, **one).needs_output_length
    assert make_limits(None, RATE_LIMIT_SERVER_OUTPUT_TOKENS="1").needs_output_length
    assert not make_limits(None, RATE_LIMIT_INPUT_TOKENS="1").needs_output_length
    assert not make_limits(None, RATE_LIMIT_ENABLED="0", **one).needs_output_length


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    monkeypatch.setattr(rate_limits, "asyncio", SimpleNamespace(sleep=sleep))
    return clock


async def test_a_send_waits_until_the_moment_at_which_there_is_room(clock: Clock) -> None:
    limits = make_limits(None, clock, RATE_LIMIT_MAX="1", RATE_LIMIT_WAIT_MS="3600000")
    await take(limits)
    clock.advance(600)
    await take(limits, deadline=clock.monotonic() + 3000)

    assert clock.monotonic() == 1000 + HOUR
    with pytest.raises(MercuryError) as refused:
        await take(limits, deadline=clock.monotonic() + 3599)
    assert (refused.value.retry_after, clock.monotonic()) == (HOUR, 1000 + HOUR)


async def test_of_limits_that_take_equally_long_the_clients_own_is_told(clock: Clock) -> None:
    limits = make_limits(None, clock, RATE_LIMIT_MAX="1", RATE_LIMIT_SERVER_MAX="1")
    await take(limits)

    with pytest.raises(MercuryError, match="this client is reached"):
        await take(limits)


async def test_the_time_that_a_send_may_wait_begins_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = make_limits(None, clock, RATE_LIMIT_MAX="1", RATE_LIMIT_WAIT_MS="5400000")

    async def sleep_while_another_is_faster(seconds: float) -> None:
        clock.advance(seconds)
        await take(limits)

    monkeypatch.setattr(rate_limits, "asyncio", SimpleNamespace(sleep=sleep_while_another_is_faster))
    await take(limits)

    with pytest.raises(MercuryError, match="this client is reached"):
        await take(limits)
    assert clock.monotonic() == 1000 + HOUR


async def test_a_limit_that_was_passed_is_in_nobodys_way_who_asks_nothing_of_it(clock: Clock) -> None:
    limits = make_limits(None, clock, RATE_LIMIT_OUTPUT_TOKENS="10", RATE_LIMIT_SERVER_MAX="9")
    limits.correct(await take(limits, "ada", 1, 10), 1, 15)  # the API counted more than was asked for

    assert await limits.left("ada") == {"client": {"output_tokens": 0}, "server": {"requests": 8}}
    await take(limits, "ada", 1, 0)


async def test_clients_that_asked_nothing_lately_are_forgotten(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "MAX_CLIENTS", 2)
    limits = make_limits(None, clock, RATE_LIMIT_MAX="1")
    await take(limits, "ada")
    clock.advance(HOUR - 1)
    await take(limits, "bob")
    clock.advance(1)
    await take(limits, "eve")

    assert sorted(account for account, _ in limits._clients) == ["bob", "eve"]  # noqa: SLF001 - memory shows nowhere else
    with pytest.raises(MercuryError):
        await take(limits, "bob")


# --- as several replicas count -----------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="module")
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    async with connected(redis_server.url) as one:
        yield one


async def test_replicas_share_the_limits_of_a_client_of_the_server_and_of_a_provider(redis: Redis) -> None:
    settings = {"RATE_LIMIT_MAX": "2", "RATE_LIMIT_SERVER_MAX": "3"}
    one, other = make_limits(redis, **settings), make_limits(redis, **settings)
    for replica in (one, other):
        await take(replica, "ada", provider=make_provider(3))

    assert await other.left("ada") == {"client": {"requests": 0}, "server": {"requests": 1}}
    with pytest.raises(MercuryError, match="this client is reached; left now: 0 requests"):
        await take(one, "ada")
    await take(one, "bob", provider=make_provider(3))
    with pytest.raises(MercuryError, match="this server is reached; left now: 0 requests"):
        await take(other, "bob")
    with pytest.raises(MercuryError, match="the provider local is reached; left now: 0 requests"):
        await take(make_limits(redis), provider=make_provider(3))


async def test_what_a_send_used_takes_the_place_of_what_it_took_everywhere(redis: Redis) -> None:
    settings = {"RATE_LIMIT_SERVER_MAX": "9", "RATE_LIMIT_INPUT_TOKENS": "50"}
    one, other = make_limits(redis, **settings), make_limits(redis, **settings)
    one.correct(await take(one, "ada", 40), 15, 1)

    await comes_to(other, {"input_tokens": 35}, {"requests": 8})


async def test_connections_of_different_replicas_are_different_clients_whatever_their_ids(
    redis: Redis,
) -> None:
    one, other = (make_limits(redis, RATE_LIMIT_MAX="1") for _ in range(2))
    for replica in (one, other):
        await take(replica, f"{CONNECTION}1")

    for replica in (one, other):
        with pytest.raises(MercuryError, match="this client is reached"):
            await take(replica, f"{CONNECTION}1")
        assert (await replica.left(f"{CONNECTION}1"))["client"] == {"requests": 0}


async def test_what_is_not_limited_is_not_counted_and_asks_nothing_of_redis(redis: Redis) -> None:
    limits = make_limits(redis, RATE_LIMIT_INPUT_TOKENS="50")
    await take(limits, "ada", 30, 40)
    looked = await SharedWindows(redis).look(Asked("mercury:client:ada", HOUR, [1, 1, 1], [0, 0, 0]))
    assert list(looked) == [0, 30, 0]

    commands = redis.commands
    assert await take(make_limits(redis, RATE_LIMIT_MAX="1"), "ada", is_first=False) is None
    assert await take(make_limits(redis)) is None
    assert redis.commands == commands


async def test_while_redis_is_gone_each_replica_counts_for_itself_with_what_it_let_through_before(
    tmp_path: Path,
) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as here, connected(server.url) as there:
            one, other = (make_limits(redis, RATE_LIMIT_MAX="3") for redis in (here, there))
            await take(one)
            await take(other)
            server.kill()
            for _ in range(2):
                await take(one)
            with pytest.raises(MercuryError, match="this client is reached; left now: 0 requests"):
                await take(one)
            other.correct(await take(other), 0, 0)

            assert (await other.left("ada"))["client"] == {"requests": 1}
