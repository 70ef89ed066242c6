"""Routes: names and rules lead to models and providers, and a fallback never bills twice."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridgehead.mercury.bridge import far_side, make_bridge
from bridgehead.mercury.calling import provider
from bridgehead.mercury.calling.routes import read_routes
from bridgehead.mercury.doctor import examine
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.settings import SettingError
from tests.mercury.process import environment, error_of
from tests.support.checked import CheckedClient, connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, STREAM = "mercury_chat_completion", "mercury_chat_stream"
PATH = "/chat/completions"
FAST = """
[[routes]]
model = "fast"
to = ["local/mercury-3", "mercury/mercury-2"]
"""
Routed = Callable[..., AbstractAsyncContextManager[CheckedClient]]


def ask(**more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Of routes, in 8 words"}], "model": "fast", **more}


@pytest_asyncio.fixture(loop_scope="module")
async def local() -> AsyncIterator[Simulator]:
    """Another provider."""
    async with Simulator() as one:
        yield one


@pytest.fixture
def routed(api: Simulator, local: Simulator, tmp_path: Path) -> Routed:
    """Connect to the bridge with routes."""

    @asynccontextmanager
    async def connected(routes: str = FAST, own: str = "", **settings: str) -> AsyncIterator[CheckedClient]:
        file = tmp_path / "routes.toml"
        file.write_text(f'[providers.local]\nurl = "{local.url}"\nkey = "sk_of_local"\n{own}\n{routes}')
        given = environment(api.url, tmp_path, MERCURY_ROUTES_FILE=str(file), **settings)
        async with connect(make_bridge(MercurySettings(given))) as client:
            yield client

    return connected


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_a_name_leads_to_a_model_of_another_provider(
    routed: Routed, api: Simulator, local: Simulator, tool: str
) -> None:
    async with routed() as client:
        result = await client.call(tool, ask())

    (sent,) = local.requests.to(PATH)
    assert (sent.body["model"], sent.key) == ("mercury-3", "sk_of_local")
    assert not api.requests.to(PATH)
    metadata = result["structuredContent"]["metadata"]
    assert (metadata["provider"], metadata["model"]) == ("local", "mercury-3")


@pytest.mark.parametrize("tool", [CHAT, STREAM])
@pytest.mark.parametrize("status", [401, 402, 404, 408, 429, 500, 503])
async def test_what_cannot_have_billed_falls_back_at_once(
    routed: Routed, api: Simulator, local: Simulator, tool: str, status: int
) -> None:
    async with routed(MERCURY_RETRY_DELAY="60000") as client:
        local.faults.always(Fault(status=status))
        result = await client.call(tool, ask())

    assert result["structuredContent"]["metadata"]["provider"] == "mercury"
    assert [request.body["model"] for request in api.requests.to(PATH)] == ["mercury-2"]
    assert len(local.requests.to(PATH)) == 1


async def test_a_provider_that_is_not_there_is_passed_over(routed: Routed, api: Simulator) -> None:
    gone = '[providers.gone]\nurl = "http://127.0.0.1:9/v1"'
    async with routed(FAST.replace("local/", "gone/"), own=gone) as client:
        result = await client.call(CHAT, ask())

    assert result["structuredContent"]["metadata"]["provider"] == "mercury"


@pytest.mark.parametrize(
    ("tool", "fault"),
    [
        (CHAT, Fault(kind="cut", after=1)),
        (STREAM, Fault(kind="cut", after=1)),
        (STREAM, Fault(kind="error", after=1)),
        (CHAT, Fault(status=400)),
        (CHAT, Fault(delay=300)),
    ],
)
async def test_what_may_have_billed_or_is_wrong_everywhere_does_not_fall_back(
    routed: Routed, api: Simulator, local: Simulator, tool: str, fault: Fault
) -> None:
    async with routed(REQUEST_TIMEOUT="300") as client:
        local.faults.next(fault)
        error_of(await client.call(tool, ask()))

    assert not api.requests.to(PATH)


async def test_a_provider_that_keeps_failing_is_left_alone_and_the_others_are_not(
    routed: Routed, api: Simulator, local: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "BREAKER_FAILURES", 1)
    async with routed() as client:
        local.faults.always(Fault(status=503))
        for _ in range(3):
            assert not (await client.call(CHAT, ask())).get("isError")
        (bridge,) = client.dispatcher.lifespans
        found = far_side(client.dispatcher.lifespans[bridge].value)

    assert (len(local.requests.to(PATH)), len(api.requests.to(PATH))) == (1, 3)
    assert (found.is_up, found.detail) == (True, "Providers that keep failing: local.")


async def test_a_limit_of_a_provider_sends_what_is_over_it_to_the_next(
    routed: Routed, api: Simulator, local: Simulator
) -> None:
    async with routed(own="requests_per_minute = 2") as client:
        for _ in range(3):
            await client.call(CHAT, ask())

    assert (len(local.requests.to(PATH)), len(api.requests.to(PATH))) == (2, 1)


async def test_rules_choose_by_tool_client_and_size_where_no_model_is_named(
    routed: Routed, api: Simulator, local: Simulator
) -> None:
    rules = """
    [[routes]]
    tool = "mercury_chat_stream"
    to = ["local/mercury-2.5"]

    [[routes]]
    client = "nobody-*"
    to = ["local/mercury"]

    [[routes]]
    min_bytes = 5000
    to = ["local/mercury-3"]
    """
    small, large = ask(), ask(messages=[{"role": "user", "content": "x" * 6000}])
    async with routed(rules) as client:
        for tool, arguments in ((STREAM, small), (CHAT, large), (CHAT, small)):
            await client.call(tool, {**arguments, "model": "mercury-2"})  # named, so no rule fits
            await client.call(tool, {"messages": arguments["messages"]})

    assert [request.body["model"] for request in local.requests.to(PATH)] == ["mercury-2.5", "mercury-3"]
    assert {request.body["model"] for request in api.requests.to(PATH)} == {"mercury-2"}
    assert len(api.requests.to(PATH)) == 4


async def test_money_is_counted_over_all_providers_at_their_own_prices(
    routed: Routed, api: Simulator, local: Simulator
) -> None:
    own = "[providers.local.models.mercury-3]\nprompt_usd = 1000000\ncompletion_usd = 0\nmax_output = 100"
    async with routed(own=own, MERCURY_BUDGET_USD="0.5") as client:
        error = error_of(await client.call(CHAT, ask()))

    assert error["code"] == "BUDGET_EXCEEDED"
    assert not local.requests.to(PATH)
    assert not api.requests.to(PATH)


async def test_a_cached_answer_is_found_by_what_was_asked(
    routed: Routed, api: Simulator, local: Simulator
) -> None:
    async with routed() as client:
        await client.call(CHAT, ask(cache="use"))
        result = await client.call(CHAT, ask(cache="use"))

    assert len(local.requests.to(PATH)) == 1
    assert result["structuredContent"]["metadata"]["from_cache"]


async def test_the_names_of_routes_are_listed_as_models(routed: Routed) -> None:
    async with routed(MERCURY_ALLOWED_MODELS="mercury-2,mercury-edit-2") as client:
        listed = (await client.call("mercury_list_models"))["structuredContent"]["models"]
        answered = await client.call(CHAT, ask())

    assert [model["id"] for model in listed] == ["fast", "mercury-2", "mercury-edit-2"]
    assert not answered.get("isError")


async def test_routes_to_other_providers_alone_need_no_key_of_mercury(
    routed: Routed, local: Simulator
) -> None:
    async with routed(MERCURY_API_KEY="") as client:
        listed = (await client.call("mercury_list_models"))["structuredContent"]["models"]
        answered = await client.call(CHAT, ask())

    assert [model["id"] for model in listed] == ["fast"]
    assert not answered.get("isError")
    assert len(local.requests.to(PATH)) == 1


async def test_without_a_key_of_mercury_the_other_providers_decide_whether_it_is_up(
    tmp_path: Path, api: Simulator, local: Simulator
) -> None:
    file = tmp_path / "routes.toml"
    file.write_text(f'[providers.local]\nurl = "{local.url}"\n[[routes]]\nto = ["local/m"]\n')
    given = environment(api.url, tmp_path, MERCURY_ROUTES_FILE=str(file), MERCURY_API_KEY="")
    bridge = make_bridge(MercurySettings(given))
    async with connect(bridge) as client:
        await client.call("mercury_usage", {})
        service = client.dispatcher.lifespans[bridge].value
        up = far_side(service)
        async with local.refusing():
            await service.check()
            down = far_side(service)
    found = {one.what: one for one in await examine(given)}

    assert (up.is_up, up.detail) == (True, "No key for Mercury; calls go to local.")
    assert not down.is_up
    assert (found["key"].verdict, "Calls go to local." in found["key"].text) == ("note", True)
    assert f"provider local at {local.url}" in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[routes]]\nto = ['nowhere/m']", "nowhere"),
        ("[[routes]]\nto = []", "routes"),
        ("[[routes]]\nmodel = 'a'", "to"),
        ("[providers.x]\nurls = 'a'", "url"),
        ("not toml", "routes file"),
    ],
)
async def test_a_file_that_cannot_be_used_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "routes.toml"
    file.write_text(text)

    with pytest.raises(SettingError, match="MERCURY_ROUTES_FILE") as failure:
        read_routes(file)

    assert said in str(failure.value)
