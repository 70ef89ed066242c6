"""Tools: how they are listed, what their input may be, and what their output becomes."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from bridgehead.mcp import (
    Answer,
    Arguments,
    Audio,
    Bridge,
    CallResult,
    Content,
    Context,
    Embedded,
    Icon,
    Image,
    Link,
    NoArguments,
    Text,
    TextResource,
    ToolError,
)
from bridgehead.mcp.revisions import REVISIONS, Revision
from tests.support.checked import STATELESS, connect


class Inner(Struct, forbid_unknown_fields=True):
    weight: Annotated[float, Meta(gt=0)]


class Order(Arguments):
    count: Annotated[int, Meta(ge=1, le=9, description="How many.")]
    color: Literal["red", "blue"] = "red"
    name: Annotated[str, Meta(min_length=1, max_length=5, pattern="^[a-z]*$")] = "x"
    items: tuple[Inner, ...] = ()


class Sum(Struct):
    total: int
    note: str | None = None


bridge: Bridge[None] = Bridge("shop", "1", numeric_strings=False)


@bridge.tool(
    "Take an order.", title="Order", read_only=True, destructive=False, idempotent=True, open_world=False
)
def order(args: Order, ctx: Context[None]) -> Sum:
    return Sum(args.count)


@bridge.tool("Take an order in time.")
async def order_later(args: Order, ctx: Context[None]) -> Sum:
    return Sum(args.count, "later")


@bridge.tool(
    "Answer in words and in numbers.", icons=(Icon("https://a.example/i.png"),), meta={"a.example/x": 1}
)
async def both(args: NoArguments, ctx: Context[None]) -> Answer[Sum]:
    return Answer("It is one.", Sum(1), {"a.example/took": 5})


@bridge.tool("Answer with every kind of block.")
def blocks(args: NoArguments, ctx: Context[None]) -> list[Content]:
    return [
        Text("words"),
        Image("AAAA", "image/png"),
        Audio("AAAA", "audio/wav"),
        Embedded(TextResource(uri="a://b", text="inside")),
        Link("a://c", "sea"),
    ]


@bridge.tool("Answer plain text.", name="renamed")
def plain(args: NoArguments, ctx: Context[None]) -> str:
    return 'plain "text" ü'


@bridge.tool("Answer with a finished result.")
def finished(args: NoArguments, ctx: Context[None]) -> CallResult:
    return CallResult([Text("done")], is_error=True, meta={"a.example/m": True})


@bridge.tool("Fail in a way that the model can act on.")
def fail(args: NoArguments, ctx: Context[None]) -> Sum:
    raise ToolError("The shop is closed. Come back at nine.", {"opens": 9})


async def test_a_plain_function_may_answer_at_once_or_later() -> None:
    forgetful: Bridge[None] = Bridge("forgetful", "1.0.0")
    memory: dict[str, Sum] = {}

    @forgetful.tool("Answer at once what is remembered, and later what is not.")
    def remember(args: NoArguments, ctx: Context[None]) -> Sum | Coroutine[Any, Any, Sum]:
        return memory.get("sum") or found_out()

    async def found_out() -> Sum:
        await asyncio.sleep(0)
        memory["sum"] = Sum(2)
        return Sum(1)

    async with connect(forgetful) as client:
        structured = [(await client.call("remember", {}))["structuredContent"] for _ in range(2)]
        (listed,) = (await client.request("tools/list", {}))["tools"]

    assert [answer["total"] for answer in structured] == [1, 2]
    assert listed["outputSchema"]["properties"]["total"] == {"type": "integer"}


@pytest.mark.parametrize("tool", ["order", "order_later"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"count": 1, "colour": "red"},
            "colour is not a known property; valid properties are count, color, name, items",
        ),
        ({}, "count is required"),
        ({"count": "1"}, "count must be an integer (got '1'): send 1 without quotes around it"),
        ({"count": True}, "count must be an integer (got true)"),
        ({"count": 1.5}, "count must be an integer (got 1.5)"),
        ({"count": None}, "count must be an integer (got null)"),
        ({"count": 0}, "count must be between 1 and 9 (got 0)"),
        ({"count": 10}, "count must be between 1 and 9 (got 10)"),
        ({"count": 10**30}, f"count must be between 1 and 9 (got {10**30})"),
        ({"count": 1, "color": "green"}, "color must be one of blue, red (got 'green')"),
        ({"count": 1, "name": ""}, "name must have at least 1 character (got 0)"),
        ({"count": 1, "name": "toolong"}, "name must have at most 5 characters (got 7)"),
        ({"count": 1, "name": "A"}, "name must match the pattern ^[a-z]*$ (got 'A')"),
        (
            {"count": 1, "items": [{"weight": 1}, {"weight": 0}]},
            "items[1].weight must be greater than 0 (got 0)",
        ),
        (
            {"count": 1, "items": [{"weight": 1, "w": 2}]},
            "items[0].w is not a known property; valid properties are weight",
        ),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_with_the_place_and_what_was_expected(
    tool: str, arguments: dict[str, Any], expected: str
) -> None:
    async with connect(bridge) as client:
        result = await client.call(tool, arguments)

    assert result["isError"] is True
    assert result["content"][0]["text"] == f"Invalid arguments for {tool}: {expected}"


async def test_an_unknown_property_of_an_inner_object_is_not_told_the_names_of_the_outer_one() -> None:
    async with connect(bridge) as client:
        text = await client.text("order", {"count": 1, "items": [{"weight": 1, "w": 2}]})

    assert "color" not in text


@pytest.mark.parametrize("arguments", ["[]", "5", '"text"'])
async def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    async with connect(bridge) as client:
        params = f'{{"name":"order","arguments":{arguments}}}'
        answer = await client.raw(
            f'{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{params}}}'.encode()
        )

    assert answer["result"]["isError"] is True
    assert "the arguments must be an object (got " in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("arguments", ["", ',"arguments":{}', ',"arguments":null'])
async def test_a_tool_without_input_is_called_with_none(arguments: str) -> None:
    async with connect(bridge) as client:
        params = f'{{"name":"renamed"{arguments}}}'
        answer = await client.raw(
            f'{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{params}}}'.encode()
        )

    assert answer["result"] == {"content": [{"type": "text", "text": 'plain "text" ü'}]}


async def test_an_unknown_property_of_a_tool_without_input_is_refused_with_its_name() -> None:
    async with connect(bridge) as client:
        text = await client.text("renamed", {"surprise": 1})

    assert "surprise is not a known property; there are none" in text


async def test_a_struct_is_answered_as_structured_content_and_as_the_same_text() -> None:
    async with connect(bridge) as client:
        assert await client.call("order", {"count": 3}) == {
            "content": [{"type": "text", "text": '{"total":3,"note":null}'}],
            "structuredContent": {"total": 3, "note": None},
        }
        assert (await client.call("order_later", {"count": 3}))["structuredContent"]["note"] == "later"


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_an_answer_has_its_own_text_beside_its_structure_and_meta(revision: Revision) -> None:
    async with connect(bridge, revision=revision) as client:
        result = await client.call("both")

    assert result["content"] == [{"type": "text", "text": "It is one."}]
    assert result["_meta"]["a.example/took"] == 5
    assert ("structuredContent" in result) == revision.structured_output


async def test_blocks_are_answered_as_they_are() -> None:
    async with connect(bridge) as client:
        content = (await client.call("blocks"))["content"]

    assert [block["type"] for block in content] == ["text", "image", "audio", "resource", "resource_link"]
    assert content[3]["resource"] == {"uri": "a://b", "text": "inside"}


async def test_a_finished_result_is_sent_as_it_is() -> None:
    async with connect(bridge) as client:
        result = await client.call("finished")

    assert result == {
        "_meta": {"a.example/m": True},
        "content": [{"type": "text", "text": "done"}],
        "isError": True,
    }


async def test_a_tool_error_is_a_result_that_the_model_reads() -> None:
    async with connect(bridge) as client, connect(bridge, revision=STATELESS) as stateless:
        for one in (client, stateless):
            result = await one.call("fail")

            assert result["isError"] is True
            assert result["content"] == [{"type": "text", "text": "The shop is closed. Come back at nine."}]
            assert result["structuredContent"] == {"opens": 9}


async def test_an_unknown_tool_is_a_protocol_error_that_names_the_known_ones() -> None:
    async with connect(bridge) as client:
        error = await client.error("tools/call", {"name": "odrer"})

    assert error["code"] == -32602
    assert "odrer" in error["message"]
    assert "order" in error["data"]["tools"]


async def test_a_call_without_a_name_is_a_protocol_error() -> None:
    async with connect(bridge) as client:
        error = await client.error("tools/call", {"arguments": {}})

    assert error["code"] == -32602
    assert "name" in error["message"]


async def test_tools_are_listed_in_the_order_of_their_declaration_with_all_that_is_said_of_them() -> None:
    async with connect(bridge) as client:
        tools = (await client.request("tools/list"))["tools"]

    assert [tool["name"] for tool in tools] == [
        "order",
        "order_later",
        "both",
        "blocks",
        "renamed",
        "finished",
        "fail",
    ]
    first, both_tool = tools[0], tools[2]
    assert (first["title"], first["description"]) == ("Order", "Take an order.")
    assert first["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert both_tool["icons"] == [{"src": "https://a.example/i.png"}]
    assert both_tool["_meta"] == {"a.example/x": 1}
    assert both_tool["outputSchema"] == first["outputSchema"]
    assert tools[3].keys() == {"name", "description", "inputSchema"}


async def test_the_schemas_of_a_tool_are_flat_and_strict() -> None:
    async with connect(bridge) as client:
        schema = (await client.request("tools/list"))["tools"][0]["inputSchema"]

    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["count"]
    assert schema["properties"]["count"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "How many.",
    }
    assert schema["properties"]["color"] == {"type": "string", "enum": ["blue", "red"], "default": "red"}
    assert schema["properties"]["items"]["items"]["properties"]["weight"]["exclusiveMinimum"] == 0
    assert "$ref" not in str(schema)


async def test_an_input_schema_can_be_given_instead_of_made() -> None:
    given = {"type": "object", "properties": {"count": {"type": "integer"}}}
    special: Bridge[None] = Bridge("special", "1")
    special.tool("Take it.", input_schema=given)(order)
    async with connect(special) as client:
        assert (await client.request("tools/list"))["tools"][0]["inputSchema"] == given


async def test_the_schema_that_was_made_can_be_changed_before_it_is_listed() -> None:
    def shorten(schema: dict[str, Any]) -> dict[str, Any]:
        return {**schema, "properties": {"count": schema["properties"]["count"]}}

    special: Bridge[None] = Bridge("special", "1")
    special.tool("Take it.", input_schema=shorten)(order)
    async with connect(special) as client:
        listed = (await client.request("tools/list"))["tools"][0]["inputSchema"]
        taken = await client.call("order", {"count": 3, "color": "blue"})

    assert (list(listed["properties"]), listed["properties"]["count"]["maximum"]) == (["count"], 9)
    assert not taken.get("isError")


async def test_a_whole_float_is_an_integer_as_json_schema_has_it() -> None:
    async with connect(bridge) as client:
        assert (await client.call("order", {"count": 3.0}))["structuredContent"]["total"] == 3
        for wrong in (3.5, 10.0, "3", 1e300):
            assert (await client.call("order", {"count": wrong}))["isError"]


pinned: Bridge[None] = Bridge("pinned", "1", instructions="Read me.", contract_revision="2024-11-05")
PINNED = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
pinned.tool("Take an order.", contract_schema=PINNED)(order)


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_only_clients_of_the_contracts_revision_get_what_it_pins(revision: Revision) -> None:
    async with connect(pinned, revision=revision) as client:
        (tool,) = (await client.request("tools/list"))["tools"]
        opening = await client.request("server/discover") if revision.stateless else client.sent[0]["result"]

    is_contract = revision.name == "2024-11-05"
    assert (tool["inputSchema"] == PINNED) == is_contract
    assert ("instructions" not in opening) == is_contract
