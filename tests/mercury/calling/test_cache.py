"""The cache: when an answer is kept, what is said of it, and what is never kept."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.revisions import REVISIONS, Revision
from bridgehead.mercury.bridge import manifest
from bridgehead.mercury.calling.cache import Cache
from bridgehead.mercury.calling.call import Call
from bridgehead.mercury.completion import Completion, Metadata, Tokens
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock
from tests.mercury.process import (
    CACHE_MAX_BYTES,
    BridgeProcess,
    bridge_process,
    environment,
    sharing,
)
from tests.support import mercury_journal
from tests.support.checked import STATELESS, connect
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"


def ask(about: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"Of {about}, in 8 words"}], **more}


def count(api: Simulator) -> int:
    return len([request for request in api.requests if request.path.endswith("completions")])


async def test_by_default_nothing_is_kept(client: BridgeProcess, api: Simulator) -> None:
    await client.call(CHAT, ask("default"))
    result = await client.call(CHAT, ask("default"))

    assert count(api) == 2
    assert "from_cache" not in result["structuredContent"]["metadata"]


async def test_a_call_can_ask_for_a_kept_answer_and_is_told_that_it_is_one(
    client: BridgeProcess, api: Simulator
) -> None:
    first = await client.call(CHAT, ask("use", cache="use"))
    second = await client.call(CHAT, ask("use", cache="use"))

    assert count(api) == 1
    assert second["content"] == first["content"][:1]  # without what it cost
    metadata = second["structuredContent"]["metadata"]
    assert metadata["from_cache"]
    assert 0 <= metadata["cache_age_seconds"] < 10
    assert metadata["cost_usd"] == 0
    assert metadata["usage"] == first["structuredContent"]["metadata"]["usage"]


async def test_an_answer_that_is_given_again_and_again_is_counted_and_grows_older(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, CACHE_COMPLETIONS="1") as client:
        results = [await client.call(CHAT, ask("again")) for _ in range(5)]
        usage = (await client.call("mercury_usage"))["structuredContent"]

    first, *kept = (result["structuredContent"] for result in results)
    assert count(api) == 1
    assert {result["content"][0]["text"] for result in results} == {first["content"]}
    ages = [again["metadata"].pop("cache_age_seconds") for again in kept]
    assert ages == sorted(ages)
    expected = {**first["metadata"], "from_cache": True, "cost_usd": 0.0}
    assert [again["metadata"] for again in kept] == [expected] * 4
    assert usage["cache"] | {"bytes": 0} == {"entries": 1, "bytes": 0, "hits": 4, "misses": 1, "shared": 0}
    assert (usage["since_start"]["total"]["calls"], usage["today"]["total"]["cache_hits"]) == (5, 4)
    audited = [line for line in client.log() if line.get("tool") == CHAT]
    assert [line["from_cache"] for line in audited] == [False, True, True, True, True]
    assert {line["cost_usd"] for line in audited[1:]} == {0.0}


async def test_a_kept_answer_that_only_calls_tools_is_given_again_as_it_was(
    client: BridgeProcess, api: Simulator
) -> None:
    offered = {"type": "function", "function": {"name": '"cache_age_seconds":1', "parameters": {}}}
    arguments = ask("tools", cache="use", tools=[offered], tool_choice="required")
    results = [await client.call(CHAT, arguments) for _ in range(3)]

    assert count(api) == 1
    assert len({str(result["content"][0]) for result in results}) == 1
    assert all(result["structuredContent"]["tool_calls"] for result in results)
    assert [r["structuredContent"]["metadata"].get("from_cache") for r in results] == [None, True, True]


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_every_client_is_told_in_the_words_of_its_revision(
    api: Simulator, tmp_path: Path, revision: Revision
) -> None:
    settings = MercurySettings(environment(api.url, tmp_path, CACHE_COMPLETIONS="1"))
    made = manifest.make(settings, Metrics())
    async with connect(made, revision=revision) as client:
        *_, last = [await client.call(CHAT, ask("revisions")) for _ in range(3)]

    place = last["structuredContent"] if revision.structured_output else last["_meta"]
    assert place["metadata"]["from_cache"]
    assert 0 <= place["metadata"]["cache_age_seconds"] < 10
    assert count(api) == 1


async def test_another_client_gets_the_same_answer_and_its_own_line(api: Simulator, tmp_path: Path) -> None:
    names = ["one", "one", "one", "other", "one", "other"]
    async with bridge_process(api.url, tmp_path, CACHE_COMPLETIONS="1") as client:
        for name in names:
            meta = {
                META_PREFIX + "protocolVersion": STATELESS.name,
                META_PREFIX + "clientInfo": {"name": name, "version": "1"},
                META_PREFIX + "clientCapabilities": {},
            }
            await client.request("tools/call", {"name": CHAT, "arguments": ask("everybody"), "_meta": meta})

    audited = [line["client"] for line in client.log() if line["event"] == "call"]
    assert audited == names
    assert count(api) == 1


async def test_every_difference_makes_another_request(client: BridgeProcess, api: Simulator) -> None:
    different = [
        ask("one", cache="use"),
        ask("two", cache="use"),
        ask("one", cache="use", temperature=0.5),
        ask("one", cache="use", model="mercury-3"),
        ask("one", cache="use", seed=1),
    ]
    for arguments in different:
        await client.call(CHAT, arguments)

    assert count(api) == 5


async def test_refresh_asks_anew_and_keeps_and_bypass_does_neither(
    client: BridgeProcess, api: Simulator
) -> None:
    await client.call(CHAT, ask("ways", cache="use"))
    await client.call(CHAT, ask("ways", cache="refresh"))
    await client.call(CHAT, ask("ways", cache="bypass"))
    assert count(api) == 3

    kept = await client.call(CHAT, ask("ways", cache="use"))

    assert count(api) == 3
    assert kept["structuredContent"]["metadata"]["from_cache"]


async def test_a_stream_can_be_answered_from_the_cache_in_one_piece(
    client: BridgeProcess, api: Simulator
) -> None:
    first = await client.call("mercury_chat_stream", ask("streams", cache="use"))
    second = await client.call("mercury_chat_stream", ask("streams", cache="use"), progress=1)

    assert count(api) == 1
    assert [notice["message"] for notice in client.progress()] == [first["content"][0]["text"]]
    assert second["structuredContent"]["metadata"]["from_cache"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mercury_fim_completion", {"prompt": "def f(", "suffix": "return"}),
        ("mercury_edit_completion", {"prompt": "<|code_to_edit|>x<|/code_to_edit|>"}),
    ],
)
async def test_code_is_kept_too(
    client: BridgeProcess, api: Simulator, tool: str, arguments: dict[str, Any]
) -> None:
    await client.call(tool, {**arguments, "cache": "use"})
    result = await client.call(tool, {**arguments, "cache": "use"})

    assert count(api) == 1
    assert result["structuredContent"]["metadata"]["from_cache"]


async def test_errors_and_truncated_answers_are_never_kept(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(status=400))
    await client.error(CHAT, ask("errors", cache="use"))
    await client.call(CHAT, ask("errors", cache="use"))
    assert count(api) == 2

    for _ in range(2):
        result = await client.call(CHAT, ask("length", cache="use", max_tokens=2))
        assert result["structuredContent"]["metadata"]["finish_reason"] == "length"
    assert count(api) == 4


@pytest_asyncio.fixture(loop_scope="module", params=["local", "redis"])
async def caching(
    request: pytest.FixtureRequest, api: Simulator, tmp_path: Path
) -> AsyncIterator[BridgeProcess]:
    """A bridge that keeps answers, here alone or in Redis too."""
    shared = sharing(request.getfixturevalue("redis_server")) if request.param == "redis" else {}
    async with bridge_process(api.url, tmp_path, CACHE_COMPLETIONS="1", **shared) as client:
        yield client


async def test_equal_calls_under_way_are_sent_once_and_failures_are_not_kept(
    caching: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(status=400))
    failed = await caching.call(CHAT, ask("one answer"))
    api.faults.next(Fault(delay=0.2))
    calls = [caching.start(CHAT, ask("one answer"))[1] for _ in range(5)]
    texts = {(await answer)["result"]["content"][0]["text"] for answer in calls}
    again = await caching.call(CHAT, ask("one answer"))

    assert failed["isError"]
    assert count(api) == 2
    assert texts == {again["content"][0]["text"]}


async def test_only_the_first_of_calls_that_share_an_answer_reports_its_cost(
    client: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(delay=0.5))
    ask = {"messages": [{"role": "user", "content": "Of one bill for all, in 8 words"}], "cache": "use"}
    answers = [client.start(CHAT, ask)[1] for _ in range(4)]
    costs = [(await answer)["result"]["structuredContent"]["metadata"]["cost_usd"] for answer in answers]

    assert len([cost for cost in costs if cost > 0]) == 1


async def test_calls_that_want_their_own_answer_are_asked_each(client: BridgeProcess, api: Simulator) -> None:
    calls = [client.start(CHAT, ask("apart"))[1] for _ in range(3)]
    for answer in calls:
        await answer

    assert count(api) == 3


async def test_a_shared_request_goes_on_for_those_who_wait_and_ends_with_the_last(
    client: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(delay=0.3))
    first, _ = client.start(CHAT, ask("leaving", cache="use"))
    _, second = client.start(CHAT, ask("leaving", cache="use"))
    await mercury_journal.until(api.requests, lambda journal: journal[0])
    client.cancel(first)
    assert "isError" not in (await second)["result"]
    assert api.requests[0].aborted is None

    api.requests.clear()
    api.faults.next(Fault(delay=30))
    alone, _ = client.start(CHAT, ask("alone", cache="use"))
    await mercury_journal.until(api.requests, lambda journal: journal[0])
    client.cancel(alone)
    await mercury_journal.until(api.requests, lambda journal: journal[0].aborted is not None, within=PATIENCE)


async def test_kept_answers_are_bounded_by_number_and_size(api: Simulator, tmp_path: Path) -> None:
    settings = {"CACHE_COMPLETIONS": "1", "CACHE_MAX_SIZE": "2", CACHE_MAX_BYTES: "20480"}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        for about in ("a", "b", "c"):
            await client.call(CHAT, ask(about))
        state = (await client.call("mercury_usage"))["structuredContent"]["cache"]
        assert state["entries"] == 2
        assert 0 < state["bytes"] < 20_000
        await client.call(CHAT, ask("c"))
        assert count(api) == 3

        large = {"messages": [{"role": "user", "content": "in 2000 words"}]}
        for _ in range(2):
            await client.call(CHAT, large)
        assert count(api) == 5


async def test_a_kept_answer_is_asked_for_again_when_it_is_old(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, CACHE_COMPLETIONS="1", CACHE_TTL="1") as client:
        async with asyncio.timeout(PATIENCE):
            while count(api) < 2:
                await client.call(CHAT, ask("c"))
    first, second = api.requests.to("/chat/completions")
    assert second.arrived - first.arrived > 0.9


async def test_the_cache_can_be_switched_off_altogether(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, CACHE_ENABLED="0", CACHE_COMPLETIONS="1") as client:
        await mercury_journal.until(api.requests, lambda journal: journal.to("/models")[0].finished)
        for _ in range(2):
            await client.call(CHAT, ask("off", cache="use"))
            await client.call("mercury_list_models")

    assert count(api) == 2
    assert len(api.requests.to("/models")) == 3


async def test_models_are_kept(client: BridgeProcess, api: Simulator) -> None:
    for _ in range(3):
        await client.call("mercury_list_models")

    assert not api.requests.to("/models")


# --- bounds, without a process -----------------------------------------------------------------------------


def make_cache(**settings: str) -> Cache:
    return Cache(MercurySettings(settings), SystemClock())


def make_call(client: str, size: int) -> Call:
    return Call(
        "/path", "model", b"x" * size, tool="tool", client=client, seconds=1, request_seconds=1, cache="use"
    )


async def test_what_was_used_last_is_kept_and_what_was_not_goes_first() -> None:
    cache = make_cache(CACHE_MAX_SIZE="2")
    completion = Completion("text", Metadata(model="model", usage=Tokens(1, 1, 2), finish_reason="stop"))
    cache.store(("/path", b"old"), completion)
    cache.store(("/path", b"new"), completion)
    assert cache.lookup(("/path", b"old"), 0.0) is not None  # so it is the one that was used last

    cache.store(("/path", b"newer"), completion)

    assert cache.lookup(("/path", b"old"), 0.0) is not None
    assert cache.lookup(("/path", b"new"), 0.0) is None
