"""Rate limits: of one client and of the whole server, on calls and on tokens, refused or waited for."""

import time
from pathlib import Path

import pytest

from bridgehead.mercury.calling import limits as limits_module
from bridgehead.mercury.calling.limits import UNKNOWN, Limits
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import bridge_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of limits, in 8 words"}]}


async def test_over_the_limit_of_a_client_a_call_is_refused_with_the_time_to_wait(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_MAX="2", RATE_LIMIT_WINDOW="60000") as client:
        for _ in range(2):
            await client.call(CHAT, ASK)
        error = await client.error(CHAT, ASK)
        left = (await client.call("mercury_usage"))["structuredContent"]["limits_left"]

    assert (error["type"], error["code"]) == ("rate_limit", "LOCAL_RATE_LIMIT")
    assert 50 < error["retry_after"] <= 60
    assert left["client"] == {"requests": 0}
    assert len(api.requests.to("/chat/completions")) == 2


async def test_the_limit_of_the_whole_server_counts_every_try(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=503), Fault(status=503))
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_SERVER_MAX="3") as client:
        await client.call(CHAT, ASK)
        error = await client.error(CHAT, ASK)

    assert (error["type"], error["code"]) == ("rate_limit", "LOCAL_RATE_LIMIT")
    assert "this server" in error["message"]
    assert len(api.requests.to("/chat/completions")) == 3


async def test_a_call_waits_for_room_where_the_settings_allow_it(api: Simulator, tmp_path: Path) -> None:
    settings = {"RATE_LIMIT_MAX": "2", "RATE_LIMIT_WINDOW": "400", "RATE_LIMIT_WAIT_MS": "30000"}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        begun = time.monotonic()
        answers = [client.start(CHAT, ASK)[1] for _ in range(5)]
        results = [(await answer)["result"] for answer in answers]
        spent = time.monotonic() - begun

    assert not any("isError" in result for result in results)
    assert spent >= 0.8  # two in each window
    arrivals = [request.arrived for request in api.requests.to("/chat/completions")]
    assert all(later - earlier > 0.35 for earlier, later in zip(arrivals, arrivals[2:], strict=False))


async def test_tokens_of_answers_are_held_for_the_worst_case_and_given_back(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_SERVER_OUTPUT_TOKENS="100") as client:
        too_much = await client.error(CHAT, {**ASK, "max_tokens": 101})
        no_end = await client.error(CHAT, ASK)
        for _ in range(3):  # eight tokens each, though sixty are held
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


async def test_a_failed_try_gives_its_tokens_back(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=400))
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_OUTPUT_TOKENS="100") as client:
        await client.error(CHAT, {**ASK, "max_tokens": 100})
        assert "isError" not in await client.call(CHAT, {**ASK, "max_tokens": 100})


async def test_limits_can_be_switched_off(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, RATE_LIMIT_ENABLED="0", RATE_LIMIT_MAX="1") as client:
        for _ in range(3):
            assert "isError" not in await client.call(CHAT, ASK)
        assert (await client.call("mercury_usage"))["structuredContent"]["limits_left"] == {}


class Clock:
    """A clock that only a test moves, and a sleep that moves it."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr("bridgehead.mercury.calling.limits.asyncio.sleep", one.sleep)
    return one


def limits(clock: Clock, **settings: str) -> Limits:
    return Limits(MercurySettings({"RATE_LIMIT_MAX": "0", "RATE_LIMIT_SERVER_MAX": "0", **settings}), clock)


FAR = float("inf")


async def test_a_client_is_refused_beyond_its_calls_and_others_are_not(clock: Clock) -> None:
    one = limits(clock, RATE_LIMIT_MAX="2", RATE_LIMIT_WINDOW="60000")
    for _ in range(2):
        await one.admit_call("ada", FAR)
    clock.time += 15
    with pytest.raises(MercuryError, match="this client is reached; left now: 0 requests") as refused:
        await one.admit_call("ada", FAR)

    assert (refused.value.code, refused.value.retry_after) == ("LOCAL_RATE_LIMIT", 45.0)
    await one.admit_call("bob", FAR)
    assert (await one.left("ada")) == {"client": {"requests": 0}, "server": {}}
    assert (await one.left("bob")) == {"client": {"requests": 1}, "server": {}}


async def test_a_call_waits_as_long_as_the_settings_and_its_own_time_allow(clock: Clock) -> None:
    settings = {"RATE_LIMIT_MAX": "1", "RATE_LIMIT_WINDOW": "60000", "RATE_LIMIT_WAIT_MS": "60000"}
    one = limits(clock, **settings)
    await one.admit_call("ada", FAR)
    await one.admit_call("ada", clock.time + 60)
    assert clock.time == 1060.0
    with pytest.raises(MercuryError):
        await one.admit_call("ada", clock.time + 59)
    assert clock.time == 1060.0
    short = limits(clock, **{**settings, "RATE_LIMIT_WAIT_MS": "59999"})
    await short.admit_call("ada", FAR)
    with pytest.raises(MercuryError):
        await short.admit_call("ada", FAR)


async def test_tokens_are_held_for_the_worst_case_and_corrected(clock: Clock) -> None:
    one = limits(clock, RATE_LIMIT_SERVER_OUTPUT_TOKENS="100", RATE_LIMIT_INPUT_TOKENS="50")
    assert one.are_on_output
    await one.admit_call("ada", FAR)
    held = await one.admit_request("ada", 30, 80, FAR)
    assert (await one.left("ada")) == {"client": {"input_tokens": 20}, "server": {"output_tokens": 20}}
    with pytest.raises(MercuryError, match="this server is reached"):
        await one.admit_request("ada", 10, 21, FAR)
    assert (await one.left("ada"))["client"] == {"input_tokens": 20}  # what was held for it is given back
    one.settle(held, 12, 34)
    assert (await one.left("ada")) == {"client": {"input_tokens": 38}, "server": {"output_tokens": 66}}


async def test_the_server_counts_requests_and_a_client_its_calls(clock: Clock) -> None:
    one = limits(clock, RATE_LIMIT_MAX="5", RATE_LIMIT_SERVER_MAX="5")
    await one.admit_call("ada", FAR)
    for _ in range(2):
        await one.admit_request("ada", 0, 0, FAR)

    assert (await one.left("ada")) == {"client": {"requests": 4}, "server": {"requests": 3}}


@pytest.mark.parametrize(("amount", "need"), [(101, "101"), (UNKNOWN, "any number of")])
async def test_what_can_never_have_room_is_refused_for_good(clock: Clock, amount: int, need: str) -> None:
    one = limits(clock, RATE_LIMIT_OUTPUT_TOKENS="100")
    with pytest.raises(MercuryError, match=f"can need {need} output tokens, and this client may use 100"):
        await one.admit_request("ada", 0, amount, FAR)
    await one.admit_request("ada", 0, 100, FAR)


async def test_limits_that_are_off_hold_nobody(clock: Clock) -> None:
    off = limits(clock, RATE_LIMIT_ENABLED="0", RATE_LIMIT_MAX="1", RATE_LIMIT_OUTPUT_TOKENS="1")
    for _ in range(3):
        await off.admit_call("ada", FAR)
        assert await off.admit_request("ada", 100, 100, FAR) is None

    assert (await off.left("ada"), off.are_on_output) == ({}, False)
    assert not limits(clock, RATE_LIMIT_INPUT_TOKENS="1").are_on_output
    assert limits(clock, RATE_LIMIT_OUTPUT_TOKENS="1").are_on_output


async def test_clients_that_asked_nothing_lately_are_forgotten(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "MOST_CLIENTS", 2)
    one = limits(clock, RATE_LIMIT_MAX="1", RATE_LIMIT_WINDOW="60000")
    await one.admit_call("ada", FAR)
    clock.time += 59
    await one.admit_call("bob", FAR)
    clock.time += 1
    await one.admit_call("eve", FAR)

    assert sorted(one._clients) == ["bob", "eve"]  # noqa: SLF001 - memory shows nowhere else
    with pytest.raises(MercuryError):
        await one.admit_call("bob", FAR)
