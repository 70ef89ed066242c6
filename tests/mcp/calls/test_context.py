"""The context of a call: progress, log messages, the trace, and what the client said of itself."""

import asyncio
import json
import math
from typing import Any

import pytest

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments, ToolError
from bridgehead.mcp.calls.context import LOG_LEVELS, InputRequired
from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.revisions import REVISIONS, V2024_11_05, V2025_11_25, Revision
from tests.support.checked import PATIENCE, STATELESS, CheckedClient, connect

bridge: Bridge[None] = Bridge("contexts", "1")


class Steps(Arguments):
    steps: list[float]
    total: float | None = None


@bridge.tool("Report progress.")
async def work(args: Steps, ctx: Context[None]) -> str:
    for step in args.steps:
        await ctx.progress(step, args.total, f"step {step:g}")
    return str(ctx.progress_token)


@bridge.tool("Log at every level.")
async def log(args: NoArguments, ctx: Context[None]) -> str:
    for level in LOG_LEVELS:
        await ctx.log(level, {"at": level}, logger="tests" if level == "error" else None)
    return "logged"


@bridge.tool("Tell the trace.")
async def trace(args: NoArguments, ctx: Context[None]) -> str:
    return str(ctx.trace)


@bridge.tool("Tell who calls.")
def who(args: NoArguments, ctx: Context[None]) -> str:
    return f"{ctx.client.info['name']} {ctx.client.capabilities} {ctx.principal} {ctx.state} {ctx.method}"


numbers: list[float] = []


@bridge.tool("Report these numbers as progress.")
async def count(args: NoArguments, ctx: Context[None]) -> str:
    for number in numbers:
        await ctx.progress(number)
    return "counted"


late: list[asyncio.Task[str]] = []


@bridge.tool("Answer, and go on talking.")
async def linger(args: NoArguments, ctx: Context[None]) -> str:
    async def go_on() -> str:
        await ctx.progress(2)
        await ctx.log("error", "still here")
        await ctx.close_stream()
        try:
            await ctx.roots()
        except ToolError:
            return "nobody to ask"
        except InputRequired:
            return "a question"
        return "an answer"

    late.append(asyncio.create_task(go_on()))
    return "gone"


@bridge.tool("Tidy up with words.")
async def tidy(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        await ctx.progress(2)
        await ctx.log("error", "tidied up")
    return "never said"


@bridge.tool("Let go of the stream.")
async def let_go(args: NoArguments, ctx: Context[None]) -> str:
    await ctx.close_stream()
    return "still here"


def logged(client: CheckedClient) -> list[str]:
    return [params["level"] for params in client.notifications("notifications/message")]


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
@pytest.mark.parametrize("token", [7, 0, "abc", ""])
async def test_progress_is_reported_under_the_token_of_the_client(revision: Revision, token: Any) -> None:
    async with connect(bridge, revision=revision) as client:
        text = await client.text("work", {"steps": [1, 2.5], "total": 4}, _meta={"progressToken": token})
        reports = client.notifications("notifications/progress")

    assert text == str(token)
    assert [(r["progressToken"], r["progress"], r["total"]) for r in reports] == [
        (token, 1, 4),
        (token, 2.5, 4),
    ]
    messages = [report.get("message") for report in reports]
    assert messages == ([None, None] if revision == V2024_11_05 else ["step 1", "step 2.5"])


@pytest.mark.parametrize("revision", [V2025_11_25, STATELESS], ids=str)
async def test_progress_without_a_token_is_not_sent(revision: Revision) -> None:
    async with connect(bridge, revision=revision) as client:
        assert await client.text("work", {"steps": [1, 2]}) == "None"
        assert await client.text("work", {"steps": [1, 2]}, _meta={}) == "None"
        assert client.notifications("notifications/progress") == []


@pytest.mark.parametrize("step", [math.nan, math.inf, -math.inf])
async def test_progress_that_is_no_number_is_not_sent(step: float) -> None:
    async with connect(bridge) as client:
        numbers[:] = [step, 1]
        await client.call("count", _meta={"progressToken": 1})

    assert [params["progress"] for params in client.notifications("notifications/progress")] == [1]


@pytest.mark.parametrize("revision", [V2025_11_25, STATELESS], ids=str)
async def test_nothing_is_said_about_a_call_once_it_is_answered(revision: Revision) -> None:
    meta = {"progressToken": 1, META_PREFIX + "logLevel": "debug"}
    async with connect(bridge, revision=revision, capabilities={"roots": {}}) as client:
        assert await client.text("linger", _meta=meta) == "gone"
        before = len(client.sent)
        said = await asyncio.wait_for(late.pop(), PATIENCE)

        assert len(client.sent) == before
    assert said == ("nobody to ask" if revision is V2025_11_25 else "a question")


async def test_nothing_is_said_about_a_call_once_it_is_cancelled() -> None:
    async with connect(bridge) as client:
        request_id, task = client.start("tools/call", {"name": "tidy", "_meta": {"progressToken": 1}})
        await client.inbox.of("notifications/progress")
        await client.notify("notifications/cancelled", {"requestId": request_id})

        assert await task is None
    assert [params["progress"] for params in client.notifications("notifications/progress")] == [1]
    assert logged(client) == []


async def test_progress_only_grows() -> None:
    async with connect(bridge) as client:
        await client.call("work", {"steps": [1, 1, 0, -5, 1.5, 1.4, 2]}, _meta={"progressToken": 1})
        reports = client.notifications("notifications/progress")

    assert [report["progress"] for report in reports] == [1, 1.5, 2]
    assert all("total" not in report for report in reports)


@pytest.mark.parametrize("token", [1.5, True, [], {}])
async def test_a_progress_token_of_the_wrong_type_is_refused(token: Any) -> None:
    async with connect(bridge) as client:
        error = await client.error("tools/call", {"name": "work", "_meta": {"progressToken": token}})

    assert error["code"] == -32602
    assert "progressToken" in error["message"]


@pytest.mark.parametrize(("level", "rank"), LOG_LEVELS.items())
async def test_a_client_hears_what_is_at_or_above_the_level_that_it_set(level: str, rank: int) -> None:
    async with connect(bridge) as client:
        assert await client.request("logging/setLevel", {"level": level}) == {}
        await client.call("log")

        assert logged(client) == list(LOG_LEVELS)[rank:]


async def test_a_client_that_set_no_level_hears_information_and_above() -> None:
    async with connect(bridge) as client:
        await client.call("log")
        messages = client.notifications("notifications/message")

    assert [message["level"] for message in messages] == list(LOG_LEVELS)[1:]
    assert messages[3] == {"level": "error", "data": {"at": "error"}, "logger": "tests"}
    assert "logger" not in messages[0]


async def test_a_stateless_client_hears_only_where_the_request_itself_names_a_level() -> None:
    async with connect(bridge, revision=STATELESS) as client:
        await client.call("log")
        assert logged(client) == []
        await client.call("log", _meta={META_PREFIX + "logLevel": "critical"})

        assert logged(client) == ["critical", "alert", "emergency"]


async def test_an_unknown_level_is_refused_with_the_known_ones_in_both_eras() -> None:
    async with connect(bridge) as client, connect(bridge, revision=STATELESS) as stateless:
        errors = [
            await client.error("logging/setLevel", {"level": "loud"}),
            await stateless.error("tools/list", {"_meta": {META_PREFIX + "logLevel": "loud"}}),
        ]

    for error in errors:
        assert error["code"] == -32602
        assert "loud" in error["message"]
        assert "emergency" in error["message"]


async def test_a_bridge_that_does_not_log_offers_no_levels_and_sends_nothing() -> None:
    quiet: Bridge[None] = Bridge("quiet", "1", logging=False)
    quiet.tool("Log at every level.")(log)
    async with connect(quiet) as client, connect(quiet, revision=STATELESS) as stateless:
        assert "logging" not in client.sent[0]["result"]["capabilities"]
        assert (await client.error("logging/setLevel", {"level": "info"}))["code"] == -32601
        assert await client.text("log") == "logged"
        assert await stateless.text("log", _meta={META_PREFIX + "logLevel": "debug"}) == "logged"

    assert logged(client) == logged(stateless) == []


async def test_the_trace_of_the_caller_reaches_the_handler() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
    async with connect(bridge, revision=STATELESS) as client, connect(bridge) as plain:
        traced = await client.text("trace", _meta={"traceparent": parent, "baggage": "a=1"})

        assert traced == str({"traceparent": parent, "baggage": "a=1"})
        assert await client.text("trace") == "{}"
        assert await plain.text("trace") == "{}"


@pytest.mark.parametrize("revision", [V2025_11_25, STATELESS], ids=str)
async def test_a_handler_knows_its_caller(revision: Revision) -> None:
    async with connect(bridge, revision=revision, capabilities={"roots": {}}) as client:
        client.connection.principal = "ada"

        assert await client.text("who") == "memory {'roots': {}} ada None tools/call"


async def test_a_stateless_client_need_not_say_its_name() -> None:
    async with connect(bridge, revision=STATELESS) as client:
        meta = {META_PREFIX + "protocolVersion": "2026-07-28", META_PREFIX + "clientCapabilities": {}}
        data = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "trace", "_meta": meta}}
        answer = await client.raw(json.dumps(data).encode())

    assert answer["result"]["content"][0]["text"] == "{}"


async def test_letting_go_of_a_stream_that_is_not_there_changes_nothing() -> None:
    async with connect(bridge) as client:
        assert await client.text("let_go") == "still here"
