"""Combined bridges: several served as one, each with its own state, dialect and fate."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridgehead.mcp import (
    Bridge,
    Context,
    Dialect,
    NoArguments,
    ProtocolError,
    ResourceItem,
    combine,
    restrict,
)
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.errors import Failure
from bridgehead.mcp.lifespan import Lifespans
from tests.support.checked import connect


class Closed(Exception):
    """A shop that cannot be used."""


class ShopDialect(Dialect):
    """Words failures as codes of its own."""

    def __init__(self, code: int) -> None:
        self._code = code

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        return ProtocolError(self._code, f"{tool}: {problem}")

    def translate(self, error: Exception) -> Failure | None:
        return ProtocolError(self._code, "closed") if isinstance(error, Closed) else super().translate(error)


def shop(name: str, code: int, *, opens: bool = True) -> Bridge[str]:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[str]:
        if not opens:
            raise Closed
        yield f"the state of {name}"

    bridge: Bridge[str] = Bridge(
        name,
        "1",
        instructions=f"Shop at {name}.",
        lifespan=lifespan,
        dialect=ShopDialect(code),
        changing={"resources"},
        subscribable=True,
    )

    _declare(bridge, name)
    return bridge


def _declare(bridge: Bridge[str], name: str) -> None:
    @bridge.tool("Look around.", name=f"{name}_look", read_only=True)
    async def look(args: NoArguments, ctx: Context[str]) -> str:
        return ctx.state

    @bridge.tool("Buy what is closed.", name=f"{name}_buy")
    async def buy(args: NoArguments, ctx: Context[str]) -> str:
        raise Closed

    @bridge.resource(f"{name}://door", name="Door")
    def door(ctx: Context[str]) -> str:
        return ctx.state

    @bridge.template(f"{name}://shelf/{{number}}", name="Shelf")
    def shelf(variables: dict[str, str], ctx: Context[str]) -> str:
        return f"{variables['number']} of {ctx.state}"

    @bridge.resource_list
    def shelves(ctx: Context[str]) -> list[ResourceItem]:
        return [ResourceItem(f"{name}://shelf/1", ctx.state)]

    @bridge.prompt("Ask for something.", name=f"{name}_ask")
    def ask(args: NoArguments, ctx: Context[str]) -> str:
        return ctx.state

    @bridge.complete_template(f"{name}://shelf/{{number}}", "number")
    def numbers(value: str, _others: dict[str, str], ctx: Context[str]) -> list[str]:
        return [ctx.state]


def both(**options: Any) -> tuple[Bridge[None], Bridge[str], Bridge[str]]:
    bakery, grocer = shop("bakery", -1), shop("grocer", -2, **options)
    return combine("mall", "2", [bakery, grocer]), bakery, grocer


async def test_everything_of_each_bridge_is_offered_and_runs_with_its_own_state() -> None:
    mall, _, _ = both()
    async with connect(mall) as client:
        tools = await client.request("tools/list", {})
        assert [t["name"] for t in tools["tools"]] == [
            "bakery_look",
            "bakery_buy",
            "grocer_look",
            "grocer_buy",
        ]
        assert await client.text("grocer_look", {}) == "the state of grocer"
        assert await client.text("bakery_look", {}) == "the state of bakery"
        listed = await client.request("resources/list", {})
        assert [(r["uri"], r["name"]) for r in listed["resources"]] == [
            ("bakery://door", "Door"),
            ("grocer://door", "Door"),
            ("bakery://shelf/1", "the state of bakery"),
            ("grocer://shelf/1", "the state of grocer"),
        ]
        for uri, text in (
            ("grocer://door", "the state of grocer"),
            ("bakery://shelf/7", "7 of the state of bakery"),
        ):
            read = await client.request("resources/read", {"uri": uri})
            assert read["contents"][0]["text"] == text
        prompt = await client.request("prompts/get", {"name": "grocer_ask"})
        assert prompt["messages"][0]["content"]["text"] == "the state of grocer"
        reference = {"type": "ref/resource", "uri": "bakery://shelf/{number}"}
        completed = await client.request(
            "completion/complete", {"ref": reference, "argument": {"name": "number", "value": ""}}
        )
        assert completed["completion"]["values"] == ["the state of bakery"]


async def test_each_tool_fails_in_the_dialect_of_its_bridge() -> None:
    mall, _, _ = both()
    async with connect(mall) as client:
        for name, code in (("bakery", -1), ("grocer", -2)):
            for tool, arguments in ((f"{name}_buy", {}), (f"{name}_look", {"unknown": 1})):
                with pytest.raises(ProtocolError) as failure:
                    await client.call(tool, arguments)
                assert failure.value.code == code


async def test_a_bridge_that_does_not_start_leaves_the_others_alone() -> None:
    mall, _, _ = both(opens=False)
    async with connect(mall) as client:
        assert await client.text("bakery_look", {}) == "the state of bakery"
        with pytest.raises(ProtocolError, match="closed"):
            await client.call("grocer_look", {})
        listed = await client.request("resources/list", {})
        assert "bakery://shelf/1" in [resource["uri"] for resource in listed["resources"]]


async def test_the_changes_of_every_bridge_are_heard() -> None:
    mall, bakery, grocer = both()
    async with connect(mall) as client:
        await client.request("resources/subscribe", {"uri": "grocer://door"})
        grocer.changed.resource("grocer://door")
        bakery.changed.resources()
        (updated,) = await client.inbox.of("notifications/resources/updated")
        assert updated["params"]["uri"] == "grocer://door"
        assert len(await client.inbox.of("notifications/resources/list_changed")) == 1


async def test_bridges_that_offer_the_same_name_cannot_be_combined() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        combine("mall", "1", [shop("bakery", -1), shop("bakery", -2)])


def read_only(bridge: Bridge[str]) -> Bridge[Any]:
    return restrict(bridge, lambda tool: tool.is_read_only)


def with_others(bridge: Bridge[str]) -> Bridge[Any]:
    return combine("mall", "1", [restrict(bridge, lambda tool: tool.is_read_only)])


@pytest.mark.parametrize("view", [read_only, with_others])
async def test_a_tool_that_is_not_offered_does_not_exist(view: Callable[[Bridge[str]], Bridge[Any]]) -> None:
    async with connect(view(shop("bakery", -1))) as client:
        tools = await client.request("tools/list", {})
        assert [tool["name"] for tool in tools["tools"]] == ["bakery_look"]
        assert await client.text("bakery_look", {}) == "the state of bakery"
        with pytest.raises(ProtocolError, match="Unknown tool: bakery_buy"):
            await client.call("bakery_buy", {})


async def test_a_restricted_bridge_looks_like_itself() -> None:
    bakery = shop("bakery", -1)
    view = restrict(bakery, lambda _: False)
    assert (view.info, view.instructions, view.dialect) == (bakery.info, bakery.instructions, bakery.dialect)
    async with connect(view) as client:
        read = await client.request("resources/read", {"uri": "bakery://door"})
    assert read["contents"][0]["text"] == "the state of bakery"


async def test_dispatchers_that_share_lifespans_serve_one_running_bridge() -> None:
    entered = 0

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[int]:
        nonlocal entered
        entered += 1
        yield entered

    bridge: Bridge[int] = Bridge("one", "1", lifespan=lifespan)
    lifespans = Lifespans()
    dispatchers = [
        Dispatcher(served, lifespans=lifespans) for served in (bridge, combine("all", "1", [bridge]))
    ]
    for dispatcher in dispatchers:
        dispatcher.start()
    await lifespans[bridge].wait_until_entered()
    assert (entered, lifespans[bridge].value) == (1, 1)
    for dispatcher in dispatchers:
        await dispatcher.stop()


async def test_a_combined_bridge_and_a_view_speak_the_extensions_of_their_parts() -> None:
    first: Bridge[None] = Bridge("first", "1")
    second: Bridge[None] = Bridge("second", "1")
    first.extension("com.example/x", {"a": 1})
    second.extension("com.example/x", {"b": 2})
    second.extension("com.example/y")
    whole = combine("whole", "1", [first, second])
    async with connect(whole) as client, connect(restrict(second, lambda _: False)) as view:
        told = [await one.request("initialize", {}) for one in (client, view)]

    assert told[0]["capabilities"]["extensions"] == {"com.example/x": {"a": 1, "b": 2}, "com.example/y": {}}
    assert told[1]["capabilities"]["extensions"] == {"com.example/x": {"b": 2}, "com.example/y": {}}


def test_bridges_that_contradict_each_other_about_an_extension_cannot_be_combined() -> None:
    first: Bridge[None] = Bridge("first", "1")
    second: Bridge[None] = Bridge("second", "1")
    first.extension("com.example/x", {"a": 1})
    second.extension("com.example/x", {"a": 2})

    with pytest.raises(ValueError, match="'a' of the same extension"):
        combine("whole", "1", [first, second])
