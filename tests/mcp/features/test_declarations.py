"""Declarations of resources, templates, prompts, completers and lifespans hold, or are refused."""

import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from msgspec import Meta

from bridgehead.mcp import Answer, Bridge, Context, DeclarationError, Image, PromptMessage, Text, in_memory
from tests.support.checked import connect


@dataclass
class Note:
    text: str


async def read(bridge: Bridge[Any], uri: str) -> Any:
    async with connect(bridge) as client:
        (content,) = (await client.request("resources/read", {"uri": uri}))["contents"]
    return content


@pytest.mark.parametrize(
    ("value", "text"),
    [({"a": 1}, '{"a":1}'), ([1, 2], "[1,2]"), (Note("x"), '{"text":"x"}'), (5, "5"), ([], "[]")],
)
async def test_data_is_read_as_json(value: Any, text: str) -> None:
    bridge: Bridge[None] = Bridge("notes", "1")

    @bridge.resource("notes://today")
    def today() -> Any:
        """Notes of today."""
        return value

    assert await read(bridge, "notes://today") == {
        "uri": "notes://today",
        "mimeType": "application/json",
        "text": text,
    }
    item = bridge.resources["notes://today"].item
    assert (item.name, item.description) == ("today", "Notes of today.")


@pytest.mark.parametrize("value", [None, object()], ids=["nothing", "an object"])
async def test_a_resource_that_cannot_be_sent_is_an_error_with_its_uri(value: Any) -> None:
    bridge: Bridge[None] = Bridge("notes", "1")
    bridge.resource("notes://today", name="today")(lambda: value)

    async with connect(bridge) as client:
        error = await client.error("resources/read", {"uri": "notes://today"})
    assert error["message"].startswith(
        "Resource notes://today returned a result that breaks its declared type"
    )


async def test_variables_are_parameters_of_their_names_and_types() -> None:
    bridge: Bridge[None] = Bridge("notes", "1")

    @bridge.template("notes://{year}/{path*}{?words}")
    async def note(year: int, path: list[str], ctx: Context, words: Annotated[int, Meta(ge=1)] = 9) -> Any:
        return [year, path, words, ctx.method]

    assert (await read(bridge, "notes://2026/a/b?words=3"))["text"] == '[2026,["a","b"],3,"resources/read"]'
    assert (await read(bridge, "notes://2026/a"))["text"] == '[2026,["a"],9,"resources/read"]'
    async with connect(bridge) as client:
        error = await client.error("resources/read", {"uri": "notes://2026/a?words=0"})
    assert error["code"] == -32602


def make() -> Bridge[None]:
    """Make a bridge with a prompt and a template to complete."""
    bridge: Bridge[None] = Bridge("notes", "1")

    @bridge.prompt
    def plan(day: str) -> str:
        """Plan a day."""
        return day

    bridge.template("notes://{day}", name="day")(lambda day: day)
    return bridge


def takes(function: Callable[..., Any]) -> Callable[[Bridge[None]], Any]:
    return lambda bridge: bridge.template("notes://{a}/{b}{?c}", name="x")(function)


@asynccontextmanager
async def two(bridge: Bridge[None], other: int) -> AsyncIterator[None]:
    yield


async def no_manager() -> AsyncIterator[None]:
    yield


def _needy(a: str, b: str, c: str) -> str:
    return a


def _nothing() -> list[str]:
    return []


def _one(value: str) -> list[int]:
    return [1]


def _wrong(a: str, b: str, day: str, c: str = "") -> str:
    return a


MISTAKES: list[tuple[Callable[[Bridge[None]], Any], str]] = [
    (lambda bridge: bridge.resource("today", name="x"), "'today' is not a URI"),
    (lambda bridge: bridge.resource("notes://{day}x", name="x"), "Declare it with bridge.template"),
    (takes(lambda a: a), "no parameter for the variable b"),
    (takes(_needy), "a URI may leave out c, so its parameter needs a default"),
    (takes(_wrong), "the parameter day is no variable of its URI"),
    (lambda bridge: bridge.complete_prompt("other", "day"), "There is no prompt 'other' to complete"),
    (lambda bridge: bridge.complete_prompt("plan", "week"), "has no argument 'week'. It has day"),
    (lambda bridge: bridge.complete_template("notes://{day}", "week"), "has no variable 'week'"),
    (lambda bridge: bridge.complete_prompt("plan", "day")(_nothing), "takes the text so far"),
    (lambda _: Bridge("x", "1", lifespan=two), "A lifespan takes the bridge"),  # type: ignore[arg-type]
    (lambda _: Bridge("x", "1", lifespan=no_manager), "asynccontextmanager"),  # type: ignore[arg-type]
    (
        lambda bridge: bridge.tool("Do it.", name="x", read_only=True, destructive=True)(lambda: None),
        "cannot be both read_only and destructive",
    ),
    (lambda bridge: bridge.tool("Do it.", name="x", meta={"a": object()})(lambda: None), "cannot be listed"),
    (lambda bridge: bridge.tool("Do it.")(lambda: None), "has no name"),
]


@pytest.mark.parametrize(("declare", "message"), MISTAKES, ids=[case[1] for case in MISTAKES])
def test_a_mistake_is_refused_when_it_is_made(declare: Callable[[Bridge[None]], Any], message: str) -> None:
    bridge = make()

    with pytest.raises(DeclarationError, match=re.escape(message)):
        declare(bridge)(lambda: "")


@pytest.mark.parametrize(
    ("header", "kind"),
    [("", "string"), ("a b", "string"), ("a\r\nb", "string"), ("Price", "number"), ("Tags", "array")],
)
def test_a_header_that_cannot_be_sent_is_refused(header: str, kind: str) -> None:
    bridge: Bridge[None] = Bridge("shop", "1")
    properties: dict[str, Any] = {"a": {"type": kind, "x-mcp-header": header}}

    with pytest.raises(DeclarationError, match=r"Tool buy: the x-mcp-header .* of a"):
        bridge.tool("Buy.", name="buy", input_schema={"type": "object", "properties": properties})(lambda: "")


@pytest.mark.parametrize(
    "schema",
    [
        {"b": {"type": "string", "x-mcp-header": "a"}, "c": {"type": "string", "x-mcp-header": "A"}},
        {"b": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}},
    ],
    ids=["twice", "in items"],
)
def test_a_header_is_unique_and_outside_of_lists(schema: dict[str, Any]) -> None:
    bridge: Bridge[None] = Bridge("shop", "1")

    with pytest.raises(DeclarationError, match="x-mcp-header"):
        bridge.tool("Buy.", name="buy", input_schema={"type": "object", "properties": schema})(lambda: "")


def _returning(value: Any) -> Callable[[], Any]:
    return lambda: value


async def test_a_prompt_is_text_a_message_or_a_list_of_both() -> None:
    asked = PromptMessage("assistant", Text("What for?"))
    for value, roles in (
        ("a", ["user"]),
        (asked, ["assistant"]),
        (["a", asked, Image("AA==", "image/png")], ["user", "assistant", "user"]),
    ):
        bridge: Bridge[None] = Bridge("prompts", "1")
        bridge.prompt("Give it.", name="give")(_returning(value))
        async with connect(bridge) as client:
            messages = (await client.request("prompts/get", {"name": "give"}))["messages"]
        assert [message["role"] for message in messages] == roles


async def test_a_completer_takes_what_it_needs_and_gives_texts() -> None:
    bridge = make()
    bridge.complete_prompt("plan", "day")(lambda value: [value + "day"])
    bridge.complete_template("notes://{day}", "day")(_one)  # type: ignore[type-var]
    async with connect(bridge) as client:
        argument = {"name": "day", "value": "mon"}
        good = await client.request(
            "completion/complete", {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": argument}
        )
        bad = await client.error(
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "notes://{day}"}, "argument": argument},
        )
    assert good["completion"]["values"] == ["monday"]
    assert "expected a list of str" in bad["message"]


async def test_a_lifespan_may_take_the_bridge() -> None:
    @asynccontextmanager
    async def lifespan(bridge: Bridge[str]) -> AsyncIterator[str]:
        yield bridge.info.name

    bridge: Bridge[str] = Bridge("named", "1", lifespan=lifespan)

    @bridge.tool
    def name(ctx: Context[str]) -> str:
        """Give the name."""
        return ctx.state

    async with connect(bridge) as client:
        assert await client.text("name") == "named"


async def test_a_tool_that_is_added_while_served_is_listed_and_announced() -> None:
    bridge: Bridge[None] = Bridge("growing", "1", changing={"tools"})
    bridge.tool("First.", name="first")(lambda: "")
    async with connect(bridge) as client:
        before = await client.request("tools/list")
        bridge.tool("Second.", name="second")(lambda: "")
        after = await client.request("tools/list")
        assert await client.inbox.of("notifications/tools/list_changed")
    assert [len(one["tools"]) for one in (before, after)] == [1, 2]


async def test_a_function_that_blocks_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    bridge: Bridge[None] = Bridge("slow", "1")

    @bridge.tool
    def sleepy() -> str:
        """Sleep."""
        time.sleep(0.15)
        return ""

    caplog.set_level(logging.WARNING)
    async with connect(bridge) as client:
        await client.call("sleepy")
        await client.call("sleepy")
    (record,) = [record for record in caplog.records if "blocked" in record.getMessage()]
    assert "sleepy" in record.getMessage()
    assert "in_thread=True" in record.getMessage()


async def test_one_text_is_one_note() -> None:
    bridge: Bridge[None] = Bridge("noted", "1")
    bridge.tool("Give it.", name="give")(lambda: Answer("a", notes="Mind the gap."))  # type: ignore[arg-type]

    async with connect(bridge) as client:
        assert (await client.call("give"))["content"][1]["text"] == "Note: Mind the gap."


async def test_a_form_that_is_no_form_is_refused_before_it_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    bridge: Bridge[None] = Bridge("asks", "1")

    @bridge.tool
    async def ask(ctx: Context) -> str:
        """Ask."""
        return str(await ctx.elicit("?", str))  # type: ignore[arg-type]

    async with connect(bridge, capabilities={"elicitation": {}}) as client:
        assert (await client.call("ask"))["isError"]
        assert not [message for message in client.sent if message.get("method") == "elicitation/create"]
    assert "A form is a Struct" in caplog.text


async def test_a_client_that_fails_to_answer_ends_the_call() -> None:
    bridge: Bridge[None] = Bridge("asks", "1")

    @bridge.tool
    async def ask(ctx: Context) -> str:
        """Ask."""
        return str(await ctx.elicit("?", {"type": "object", "properties": {}}))

    def answering(_method: str, _params: Any) -> Any:
        raise ZeroDivisionError("the test's own mistake")

    async with in_memory.connect(bridge, capabilities={"elicitation": {}}, answering=answering) as client:
        with pytest.raises(ZeroDivisionError, match="own mistake"):
            await client.call("ask")
