"""Call hooks: every tool call, resource read and prompt goes through them once, wherever it is offered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from msgspec import Meta

from bridgehead.mcp import (
    Arguments,
    Bridge,
    CallResult,
    Context,
    Invocation,
    NoArguments,
    Outcome,
    ProtocolError,
    Text,
    ToolError,
    combine,
    jsonrpc,
    observe_calls,
    restrict,
)
from bridgehead.mcp.in_memory import connect
from bridgehead.mcp.revisions import V2026_07_28


class Echo(Arguments):
    text: Annotated[str, Meta(max_length=9)]


class Form(Arguments):
    sure: bool


def message(tool: str) -> bytes:
    params = b'{"name":"%b","arguments":{"text":"a"}}' % tool.encode()
    return b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":%b}' % params


def shop() -> Bridge[None]:
    bridge: Bridge[None] = Bridge("shop", "1")
    declare_tools(bridge)

    @bridge.resource("shop://one", name="one")
    def one(ctx: Context[None]) -> str:
        return "1"

    @bridge.template("shop://{item}", name="item")
    async def item(variables: dict[str, str], ctx: Context[None]) -> str:
        if variables["item"] == "none":
            raise ToolError("sold out")
        return variables["item"]

    @bridge.prompt("Greet.")
    def greet(args: Echo, ctx: Context[None]) -> str:
        return args.text

    return bridge


def declare_tools(bridge: Bridge[None]) -> None:
    @bridge.tool("Answer at once.")
    def plain(args: Echo, ctx: Context[None]) -> str:
        return args.text

    @bridge.tool("Answer later.")
    async def slow(args: Echo, ctx: Context[None]) -> str:
        await asyncio.sleep(0)
        return args.text

    @bridge.tool("Fail.")
    def fail(args: NoArguments, ctx: Context[None]) -> str:
        raise ToolError("no")

    @bridge.tool("Answer with an error.")
    def refuse(args: NoArguments, ctx: Context[None]) -> CallResult:
        return CallResult([Text("no")], is_error=True)

    @bridge.tool("Ask first.")
    async def ask(args: NoArguments, ctx: Context[None]) -> str:
        return (await ctx.elicit("Sure?", Form)).action

    @bridge.tool("Never answer.")
    async def hang(args: NoArguments, ctx: Context[None]) -> str:
        await asyncio.Event().wait()
        return ""


class Seen(list[tuple[Invocation, Outcome, float]]):
    """What a hook was told of, in order."""

    def ended(self, call: Invocation, outcome: Outcome, seconds: float) -> None:
        self.append((call, outcome, seconds))

    @property
    def brief(self) -> list[tuple[str, str, str]]:
        return [(call.kind, call.name, outcome.status) for call, outcome, _ in self]


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def bridge(seen: Seen) -> Bridge[None]:
    bridge = shop()
    bridge.around_calls(observe_calls(seen.ended))
    return bridge


async def test_a_plain_tool_and_one_that_waits_are_seen_once_each(bridge: Bridge[None], seen: Seen) -> None:
    async with connect(bridge) as client:
        await client.call("plain", {"text": "a"})
        await client.call("slow", {"text": "b"})

    assert seen.brief == [("tool", "plain", "ok"), ("tool", "slow", "ok")]
    assert [outcome.value for _, outcome, _ in seen] == ["a", "b"]
    assert [outcome.waited for _, outcome, _ in seen] == [False, True]
    assert [call.arguments.text for call, _, _ in seen] == ["a", "b"]
    assert all(seconds >= 0 for _, _, seconds in seen)


async def test_a_plain_tool_stays_plain_under_a_hook(bridge: Bridge[None]) -> None:
    async with connect(bridge) as client:
        reply = client.dispatcher.handle_message(jsonrpc.decode(message("plain")), client.connection, client)

    assert isinstance(reply, bytes)


@pytest.mark.parametrize("tool", ["plain", "slow"])
async def test_arguments_that_do_not_fit_are_seen(bridge: Bridge[None], seen: Seen, tool: str) -> None:
    async with connect(bridge) as client:
        answer = await client.call(tool, {"text": 1})

    assert answer["isError"]
    assert seen.brief == [("tool", tool, "error")]
    assert seen[0][0].arguments is None
    assert type(seen[0][1].error).__name__ == "InvalidArguments"


async def test_a_tool_that_raises_and_one_that_answers_with_an_error_have_failed(
    bridge: Bridge[None], seen: Seen
) -> None:
    async with connect(bridge) as client:
        assert (await client.call("fail"))["isError"]
        assert (await client.call("refuse"))["isError"]

    assert seen.brief == [("tool", "fail", "error"), ("tool", "refuse", "error")]
    assert isinstance(seen[0][1].error, ToolError)


async def test_a_question_of_the_stateless_era_is_no_failure(bridge: Bridge[None], seen: Seen) -> None:
    async with connect(bridge, revision=V2026_07_28, capabilities={"elicitation": {}}) as client:
        first = await client.call("ask")
        answers = {"elicitation": {"action": "accept", "content": {"sure": True}}}
        await client.call("ask", inputResponses=answers, requestState=first["requestState"])

    assert seen.brief == [("tool", "ask", "asked"), ("tool", "ask", "ok")]


async def test_a_cancelled_call_is_seen(seen: Seen) -> None:
    waiting: list[str] = []
    bridge = shop()
    bridge.around_calls(observe_calls(seen.ended, waits=lambda call: waiting.append(call.name)))
    async with connect(bridge) as client:
        request, task = client.start("tools/call", {"name": "hang", "arguments": {}})
        while not waiting:
            await asyncio.sleep(0)
        await client.notify("notifications/cancelled", {"requestId": request})
        assert await task is None
        await client.call("plain", {"text": "a"})

    assert waiting == ["hang"]
    assert seen.brief == [("tool", "hang", "cancelled"), ("tool", "plain", "ok")]


@pytest.mark.filterwarnings("error")
async def test_a_call_that_is_cancelled_before_it_begins_never_begins(
    bridge: Bridge[None], seen: Seen
) -> None:
    async with connect(bridge) as client:
        work = client.dispatcher.handle_message(jsonrpc.decode(message("slow")), client.connection, client)
        await client.notify("notifications/cancelled", {"requestId": 9})
        assert work is not None
        assert not isinstance(work, bytes)
        assert await work is None

    assert seen == []


async def test_resources_and_prompts_are_seen(bridge: Bridge[None], seen: Seen) -> None:
    async with connect(bridge) as client:
        await client.request("resources/read", {"uri": "shop://one"})
        await client.request("resources/read", {"uri": "shop://pen"})
        with pytest.raises(ProtocolError):
            await client.request("resources/read", {"uri": "shop://none"})
        await client.request("prompts/get", {"name": "greet", "arguments": {"text": "hi"}})
        with pytest.raises(ProtocolError):
            await client.request("prompts/get", {"name": "greet", "arguments": {}})

    assert seen.brief == [
        ("resource", "shop://one", "ok"),
        ("resource", "shop://pen", "ok"),
        ("resource", "shop://none", "error"),
        ("prompt", "greet", "ok"),
        ("prompt", "greet", "error"),
    ]
    assert seen[3][0].arguments == Echo("hi")


async def test_what_nobody_declared_has_no_hook(bridge: Bridge[None], seen: Seen) -> None:
    async with connect(bridge) as client:
        for method, params in (
            ("tools/call", {"name": "nothing"}),
            ("resources/read", {"uri": "other://x"}),
            ("prompts/get", {"name": "nothing"}),
        ):
            with pytest.raises(ProtocolError):
                await client.request(method, params)

    assert seen == []


async def test_hooks_belong_to_the_bridge_of_a_part_in_every_view(bridge: Bridge[None], seen: Seen) -> None:
    other: Bridge[None] = Bridge("other", "1")

    @other.tool("Answer.")
    def elsewhere(args: NoArguments, ctx: Context[None]) -> str:
        return ""

    both = combine("both", "1", [restrict(bridge, lambda tool: tool.name == "plain"), other])
    async with connect(both) as client:
        await client.call("plain", {"text": "a"})
        await client.call("elsewhere")

    assert seen.brief == [("tool", "plain", "ok")]


async def test_the_hook_added_last_comes_first() -> None:
    order: list[str] = []
    bridge = shop()

    def hook(name: str) -> Any:
        def around(call: Invocation, run: Any) -> Any:
            order.append(f"{name} begins")
            returned = run()
            order.append(f"{name} ends")
            return returned

        return around

    bridge.around_calls(hook("inner"))
    bridge.around_calls(hook("outer"))
    async with connect(bridge) as client:
        await client.call("plain", {"text": "a"})

    assert order == ["outer begins", "inner begins", "inner ends", "outer ends"]


async def test_a_hook_may_wait_and_may_refuse() -> None:
    bridge = shop()

    async def around(call: Invocation, run: Any) -> Any:
        await asyncio.sleep(0)
        if call.name == "slow":
            raise ToolError("not now")
        returned = run()
        return await returned if asyncio.iscoroutine(returned) else returned

    bridge.around_calls(around)
    async with connect(bridge) as client:
        plain = await client.call("plain", {"text": "a"})
        wrong = await client.call("plain", {"text": 1})
        slow = await client.call("slow", {"text": "a"})
        read = await client.request("resources/read", {"uri": "shop://one"})

    assert plain["content"][0]["text"] == "a"
    assert "Invalid arguments for plain" in wrong["content"][0]["text"]
    assert slow["content"][0]["text"] == "not now"
    assert read["contents"][0]["text"] == "1"


async def test_a_hook_sees_a_call_that_waits_for_the_lifespan(seen: Seen) -> None:
    may_open = asyncio.Event()

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[str]:
        await may_open.wait()
        yield "open"

    bridge: Bridge[str] = Bridge("late", "1", lifespan=lifespan)

    @bridge.tool("Say what is open.")
    def state(args: NoArguments, ctx: Context[str]) -> str:
        return ctx.state

    bridge.around_calls(observe_calls(seen.ended))
    async with connect(bridge) as client:
        _, task = client.start("tools/call", {"name": "state", "arguments": {}})
        await asyncio.sleep(0)
        may_open.set()
        assert (await task)["result"]["content"][0]["text"] == "open"
        await client.call("state")

    assert [outcome.waited for _, outcome, _ in seen] == [True, False]


@pytest.mark.parametrize("tool", ["plain", "slow"])
async def test_a_hook_may_add_to_what_a_tool_returns(tool: str, seen: Seen) -> None:
    bridge = shop()
    bridge.around_calls(observe_calls(seen.ended, extend=lambda call, value: f"{call.name}: {value}"))
    async with connect(bridge) as client:
        answer = await client.call(tool, {"text": "a"})

    assert answer["content"] == [{"type": "text", "text": f"{tool}: a"}]
    assert [outcome.value for _, outcome, _ in seen] == [f"{tool}: a"]


@pytest.mark.parametrize("tool", ["plain", "slow"])
async def test_a_hook_that_fails_to_add_is_seen_as_a_failed_call(tool: str, seen: Seen) -> None:
    def extend(_: Invocation, __: object) -> object:
        raise ToolError("no room for more")

    bridge = shop()
    bridge.around_calls(observe_calls(seen.ended, extend=extend))
    async with connect(bridge) as client:
        answer = await client.call(tool, {"text": "a"})

    assert answer["isError"] is True
    assert seen.brief == [("tool", tool, "error")]
