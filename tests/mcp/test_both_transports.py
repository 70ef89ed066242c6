"""Both transports: the same behaviour, whichever way a client comes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.messages import Json, call, decode, text
from tests.support.waiting import PATIENCE
from tests.support.ways import WAYS, Way


@pytest_asyncio.fixture(params=sorted(WAYS))
async def way(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Way]:
    """A client of each transport in each era."""
    async with WAYS[request.param](tmp_path) as one:
        yield one


async def stats(way: Way) -> Json:
    """Ask what runs."""
    found: Json = decode(text(await way.ask("tools/call", call("stats"))).encode())
    return found


@pytest.mark.parametrize("tool", ["echo", "sync_echo"])
async def test_a_call_is_answered(way: Way, tool: str) -> None:
    words = 'Grüße, 世界 \N{GRINNING FACE} \\ " \n \x00'
    assert text(await way.ask("tools/call", call(tool, {"text": words}))) == words


async def test_the_tools_are_listed_in_the_order_of_their_declaration(way: Way) -> None:
    tools = (await way.ask("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools[:4]] == ["echo", "sync_echo", "big", "sync_big"]


async def test_an_unknown_tool_is_refused(way: Way) -> None:
    error = (await way.ask("tools/call", call("no_such_tool")))["error"]
    assert error["code"] == -32602
    assert "no_such_tool" in error["message"]


async def test_an_unknown_method_is_refused(way: Way) -> None:
    assert (await way.ask("no/such/method"))["error"]["code"] == -32601


async def test_parameters_of_a_wrong_type_are_refused(way: Way) -> None:
    assert (await way.ask("tools/list", {"cursor": 7}))["error"]["code"] == -32602


@pytest.mark.parametrize("arguments", [{}, {"text": 7}, {"text": "a", "more": 1}])
async def test_arguments_that_do_not_fit_are_told_to_the_model(way: Way, arguments: Json) -> None:
    result = (await way.ask("tools/call", call("echo", arguments)))["result"]
    assert result["isError"] is True
    assert "echo" in result["content"][0]["text"]


async def test_a_bug_does_not_tell_its_text(way: Way) -> None:
    answer = await way.ask("tools/call", call("bug"))
    assert answer["result"]["isError"]
    assert "reference" in text(answer)
    assert "secret" not in str(answer)


async def test_progress_comes_before_the_answer(way: Way) -> None:
    said = await way.exchange("tools/call", call("count", {"n": 3}, progress="token"))
    assert [message["params"]["progress"] for message in said[:-1]] == [1, 2, 3]
    assert {message["params"]["progressToken"] for message in said[:-1]} == {"token"}
    assert text(said[-1]) == "counted to 3"


async def test_no_progress_is_told_to_a_client_that_did_not_ask(way: Way) -> None:
    (answer,) = await way.exchange("tools/call", call("count", {"n": 3}))
    assert text(answer) == "counted to 3"


async def test_a_cancelled_call_stops_and_reaches_its_finally(way: Way, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    await way.abandon("tools/call", call("wait", {"marker": str(marker)}, progress=1))
    async with asyncio.timeout(PATIENCE):
        while (await stats(way))["running"]:
            continue
    assert marker.exists()
    assert (await stats(way))["cancelled"] == 1


async def test_a_resource_is_read(way: Way) -> None:
    result = (await way.ask("resources/read", {"uri": "memo://today"}))["result"]
    assert [item["text"] for item in result["contents"]] == ["Meet in the middle."]
    result = (await way.ask("resources/read", {"uri": "memo://days/monday"}))["result"]
    assert [item["text"] for item in result["contents"]] == ["Nothing on monday."]


async def test_a_missing_resource_is_refused(way: Way) -> None:
    error = (await way.ask("resources/read", {"uri": "memo://nothing/here"}))["error"]
    assert error["code"] in (-32002, -32602)
    assert error["data"] == {"uri": "memo://nothing/here"}


async def test_a_prompt_is_given(way: Way) -> None:
    result = (await way.ask("prompts/get", {"name": "greet", "arguments": {"text": "hi"}}))["result"]
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet with hi."}}]


async def test_an_answer_of_many_megabytes_arrives_whole(way: Way) -> None:
    assert text(await way.ask("tools/call", call("big", {"size": 5_000_000}))) == "x" * 5_000_000
