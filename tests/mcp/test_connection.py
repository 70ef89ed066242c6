"""The connection's questions: refused, withdrawn, too many, too late, and answers that cannot be read."""

import asyncio
from typing import Any

import msgspec
import pytest

from bridgehead.mcp import Bridge, Context, Limits, NoArguments, SamplingMessage, Text, list_roots, sampling
from bridgehead.mcp.jsonrpc import Batch, Message
from bridgehead.mcp.revisions import V2025_11_25
from tests.support.asking import ALL, make_bridge
from tests.support.checked import PATIENCE, STATELESS, CheckedClient, connect


async def answer(client: CheckedClient, question: dict[str, Any], **members: Any) -> None:
    message = {"jsonrpc": "2.0", "id": question["id"], **members}
    assert await client.raw(msgspec.json.encode(message)) is None


async def test_a_question_that_the_client_refuses_is_a_tool_error_with_its_words() -> None:
    async with connect(make_bridge(), capabilities=ALL) as client:
        _, task = client.start("tools/call", {"name": "roots"})
        (question,) = await client.inbox.of("roots/list")
        await answer(client, question, error={"code": -1, "message": "Not today"})
        result = (await task)["result"]

    assert result["isError"] is True
    assert "Not today (-1)" in result["content"][0]["text"]


@pytest.mark.parametrize("error", [{}, {"code": "x", "message": 5}, 7, {"code": 1}])
async def test_a_refusal_that_cannot_be_read_is_a_tool_error(error: Any) -> None:
    async with connect(make_bridge(), capabilities=ALL) as client:
        _, task = client.start("tools/call", {"name": "roots"})
        (question,) = await client.inbox.of("roots/list")
        await answer(client, question, error=error)

        assert "could not be read" in (await task)["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    "sent",
    [
        r'{"jsonrpc":"2.0","id":"%s","result":{"roots":[{"uri":"file:///\ud83d"}]}}',
        r'{"id":"%s","result":{"roots":[]}}',
        r'{"jsonrpc":"2.0","id":"%s","error":{"code":1,"message":"no"},"params":1e999}',
    ],
)
async def test_an_answer_that_cannot_be_read_is_not_waited_for_any_longer(sent: str) -> None:
    async with connect(make_bridge(), capabilities=ALL) as client:
        _, task = client.start("tools/call", {"name": "roots"})
        (question,) = await client.inbox.of("roots/list")
        assert await client.raw((sent % question["id"]).encode()) is None

        async with asyncio.timeout(PATIENCE):
            assert (await task)["result"]["isError"] is True


async def test_only_the_first_answer_to_a_question_counts() -> None:
    async with connect(make_bridge(), capabilities=ALL) as client:
        _, task = client.start("tools/call", {"name": "roots"})
        (question,) = await client.inbox.of("roots/list")
        await answer(client, question, result={"roots": [{"uri": "file:///first"}]})
        await answer(client, question, result={"roots": [{"uri": "file:///second"}]})
        assert "first" in (await task)["result"]["content"][0]["text"]
        await answer(client, question, result={"roots": []})
        assert not client.connection.asked


async def test_a_question_that_is_never_answered_is_given_up_and_withdrawn() -> None:
    limits = Limits(ask_seconds=0.01)
    async with connect(make_bridge(), capabilities=ALL, limits=limits) as client:
        result = await client.call("roots")
        (question,) = await client.inbox.of("roots/list")

        assert result["isError"] is True
        assert "within 0.01 s" in result["content"][0]["text"]
        assert client.notifications("notifications/cancelled") == [{"requestId": question["id"]}]
        assert not client.connection.asked


async def test_a_question_of_a_cancelled_call_is_withdrawn() -> None:
    async with connect(make_bridge(), capabilities=ALL) as client:
        request_id, task = client.start("tools/call", {"name": "roots"})
        (question,) = await client.inbox.of("roots/list")
        await client.notify("notifications/cancelled", {"requestId": request_id})

        assert await task is None
        assert client.notifications("notifications/cancelled") == [{"requestId": question["id"]}]
        assert (client.connection.asked, client.connection.in_flight) == ({}, {})
        assert client.connection.parked == 0


async def test_when_one_of_several_questions_fails_the_others_are_withdrawn() -> None:
    bridge: Bridge[None] = Bridge("several", "1")

    @bridge.tool("Ask two things.")
    async def two(args: NoArguments, ctx: Context[None]) -> str:
        think = sampling([SamplingMessage("user", Text("Think."))], max_tokens=1)
        return str(await ctx.ask({"a": list_roots(), "b": think}))

    async with connect(bridge, capabilities=ALL) as client:
        _, task = client.start("tools/call", {"name": "two"})
        (think,) = await client.inbox.of("sampling/createMessage")
        (roots,) = await client.inbox.of("roots/list")
        await answer(client, roots, error={"code": -1, "message": "no"})

        assert (await task)["result"]["isError"] is True
        await client.inbox.of("notifications/cancelled")
        assert client.notifications("notifications/cancelled") == [{"requestId": think["id"]}]
        assert not client.connection.asked
        assert client.connection.parked == 0


async def test_a_client_has_only_so_many_questions_to_answer_at_once() -> None:
    async with connect(make_bridge(), capabilities=ALL, limits=Limits(client_requests=2)) as client:
        waiting = [client.start("tools/call", {"name": "roots"})[1] for _ in range(2)]
        questions = await client.inbox.of("roots/list", 2)
        refused = await client.call("roots")
        for question in questions:
            await answer(client, question, result={"roots": []})

        assert refused["isError"] is True
        assert "Too many questions" in refused["content"][0]["text"]
        assert [task["result"]["content"][0]["text"] for task in await asyncio.gather(*waiting)] == ["", ""]


async def test_a_question_to_a_client_that_leaves_is_over() -> None:
    async with connect(make_bridge(), capabilities=ALL) as client:
        _, task = client.start("tools/call", {"name": "roots"})
        await client.inbox.of("roots/list")
        client.connection.abandon_asked()

        assert "left before it answered" in (await task)["result"]["content"][0]["text"]
        client.connection.abandon_asked()


async def test_a_client_that_answers_and_leaves_at_once_has_answered() -> None:
    async with connect(make_bridge(), capabilities=ALL) as client:
        _, task = client.start("tools/call", {"name": "roots"})
        (question,) = await client.inbox.of("roots/list")
        await answer(client, question, result={"roots": [{"uri": "file:///last"}]})
        client.connection.abandon_asked()

        assert "file:///last" in (await task)["result"]["content"][0]["text"]


async def test_a_request_that_waits_for_room_can_be_cancelled_before_it_begins() -> None:
    async with connect(make_bridge()) as client:
        first, second = Message("2.0", 1, "ping"), Message("2.0", "1", "ping")
        client.connection.waiting.extend([Batch([first]), first, second])
        await client.notify("notifications/cancelled", {"requestId": "1"})
        await client.notify("notifications/cancelled", {"requestId": 2})

        assert list(client.connection.waiting) == [Batch([first]), first]


async def test_only_the_work_of_an_outlet_that_is_gone_is_stopped() -> None:
    async with connect(make_bridge(), capabilities=ALL) as client, connect(make_bridge()) as other:
        _, task = client.start("tools/call", {"name": "roots"})
        await client.inbox.of("roots/list")
        client.connection.cancel_from(other)
        assert len(client.connection.in_flight) == 1
        client.connection.cancel_from(client)

        assert await task is None
        assert client.connection.in_flight == {}


async def test_a_call_that_waits_for_its_client_does_not_count_as_work() -> None:
    async with connect(make_bridge(), capabilities=ALL, limits=Limits(requests_in_flight=1)) as client:
        assert not client.connection.is_busy
        _, task = client.start("tools/call", {"name": "roots"})
        (question,) = await client.inbox.of("roots/list")
        assert len(client.connection.in_flight) == 1
        assert not client.connection.is_busy
        await answer(client, question, result={"roots": []})
        await task


async def test_a_connection_is_busy_when_its_requests_reach_the_limit() -> None:
    bridge: Bridge[None] = Bridge("busy", "1")
    reached, go = asyncio.Event(), asyncio.Event()

    @bridge.tool("Wait.")
    async def wait(args: NoArguments, ctx: Context[None]) -> str:
        reached.set()
        await go.wait()
        return "done"

    async with connect(bridge, limits=Limits(requests_in_flight=1)) as client:
        _, task = client.start("tools/call", {"name": "wait"})
        await reached.wait()
        assert client.connection.is_busy
        go.set()
        await task
        assert not client.connection.is_busy


async def test_a_question_that_cannot_be_encoded_is_a_bug_in_both_eras(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bridge: Bridge[None] = Bridge("odd", "1")

    @bridge.tool("Ask what is no JSON.")
    async def odd(args: NoArguments, ctx: Context[None]) -> str:
        return (await ctx.sample([], max_tokens=1, systemPrompt=object())).text

    for revision in (V2025_11_25, STATELESS):
        async with connect(bridge, capabilities=ALL, revision=revision) as client:
            assert (await client.call("odd"))["isError"]
            assert not client.connection.asked
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
