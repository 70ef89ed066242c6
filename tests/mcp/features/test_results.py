"""Results: whatever a function returns is valid in every revision, as text and as structured content."""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from bridgehead.mcp import (
    REVISIONS,
    Answer,
    Bridge,
    CallResult,
    Encoded,
    Image,
    Link,
    Revision,
    Text,
    ToolError,
)
from tests.support.checked import connect

PIXEL = Image("iVBORw0KGgo=", "image/png")


class Sum(Struct):
    total: int


class Pair(Struct, array_like=True):
    a: int
    b: int


class Tagged(Struct, tag=True):
    a: int


class Other(Struct, tag=True):
    b: int


@dataclass
class Point:
    x: int


class Named(TypedDict):
    name: str


class Place(NamedTuple):
    x: int
    y: int


class Colour(Enum):
    RED = "red"


class Level(Enum):
    HIGH = 3


NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


async def soon() -> Sum:
    return Sum(3)


CASES: list[tuple[str, Any, Any, str | None, Any]] = [
    # name, declared type, value, text (None: not looked at), structured content (None: none)
    ("text", str, "hi", "hi", None),
    ("annotated text", Annotated[str, Meta(max_length=9)], "hi", "hi", None),
    ("literal", Literal["a", "b"], "a", "a", None),
    ("enum of strings", Colour, Colour.RED, "red", None),
    ("integer", int, 5, "5", {"result": 5}),
    ("boolean", bool, False, "false", {"result": False}),
    ("number", float, 1.5, "1.5", {"result": 1.5}),
    ("enum of numbers", Level, Level.HIGH, "3", {"result": 3}),
    ("time", dt.datetime, NOON, "2026-01-01T12:00:00Z", None),
    ("nothing", None, None, "Done.", None),
    ("list of strings", list[str], ["a"], '["a"]', {"result": ["a"]}),
    ("empty list of strings", list[str], [], "[]", {"result": []}),
    ("list of structs", list[Sum], [Sum(1)], '[{"total":1}]', {"result": [{"total": 1}]}),
    ("tuple", tuple[int, str], (1, "a"), '[1,"a"]', {"result": [1, "a"]}),
    ("set", set[int], {1}, "[1]", {"result": [1]}),
    ("struct", Sum, Sum(3), '{"total":3}', {"total": 3}),
    ("struct like an array", Pair, Pair(1, 2), "[1,2]", {"result": [1, 2]}),
    ("dataclass", Point, Point(1), '{"x":1}', {"x": 1}),
    ("typed dict", Named, {"name": "a"}, '{"name":"a"}', {"name": "a"}),
    ("named tuple", Place, Place(1, 2), "[1,2]", {"result": [1, 2]}),
    ("dict", dict[str, int], {"a": 1}, '{"a":1}', {"a": 1}),
    ("dict by number", dict[int, int], {1: 2}, '{"1":2}', {"1": 2}),
    ("optional struct", Sum | None, Sum(3), '{"total":3}', {"result": {"total": 3}}),
    ("optional struct, missing", Sum | None, None, "null", {"result": None}),
    ("optional text", str | None, "hi", "hi", None),
    ("optional text, missing", str | None, None, "Done.", None),
    ("optional number", int | None, None, "null", {"result": None}),
    ("union", Tagged | Other, Other(1), None, {"result": {"type": "Other", "b": 1}}),
    ("text or struct", str | Sum, Sum(3), '{"total":3}', {"total": 3}),
    ("block", Image, PIXEL, None, None),
    ("blocks", list[Text | Image], [Text("a"), PIXEL], "a", None),
    ("no blocks", list[Text], [], None, None),
    ("link", Link, Link("file:///a", "a"), None, None),
    ("anything: number", Any, 5, "5", {"result": 5}),
    ("anything: blocks", Any, [Text("a")], "a", None),
    ("anything: struct", Any, Sum(3), '{"total":3}', {"total": 3}),
    ("anything: nothing", Any, None, "Done.", None),
    ("answer", Answer[Sum], Answer("three", Sum(3)), "three", {"total": 3}),
    ("answer with a number", Answer[int], Answer("three", 3), "three", {"result": 3}),
    ("answer without text", Answer[Sum], Answer(structured=Sum(3)), '{"total":3}', {"total": 3}),
    ("answer of text", Answer[str], Answer("three"), "three", None),
    (
        "answer or encoded",
        Answer[Sum] | Encoded | Awaitable[Answer[Sum]],
        Answer("3", Sum(3)),
        "3",
        {"total": 3},
    ),
    ("awaitable", Sum | Awaitable[Sum], Sum(3), '{"total":3}', {"total": 3}),
    ("whole result", CallResult, CallResult([Text("a")], 5), "a", {"result": 5}),
]


def returning(declared: Any, value: Any) -> Bridge[None]:
    bridge: Bridge[None] = Bridge("values", "1")

    def give() -> Any:
        """Give it."""
        return value

    give.__annotations__["return"] = declared
    bridge.tool(give)
    return bridge


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
@pytest.mark.parametrize(
    ("declared", "value", "text", "structured"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_every_type_is_valid_in_every_revision(
    declared: Any, value: Any, text: str | None, structured: Any, revision: Revision
) -> None:
    """The client checks every message against the official types of its revision."""
    async with connect(returning(declared, value), revision=revision) as client:
        (tool,) = (await client.request("tools/list"))["tools"]
        result = await client.call("give")

    assert isinstance(result["content"], list)
    if text is not None:
        assert result["content"][0]["text"] == text
    assert result.get("structuredContent") == (structured if revision.structured_output else None)
    schema = tool.get("outputSchema")
    if schema is not None:
        assert schema["type"] == "object"
        jsonschema_rs.validate(schema, result["structuredContent"])  # as official clients do


async def test_a_coroutine_function_gives_the_same() -> None:
    bridge: Bridge[None] = Bridge("values", "1")

    @bridge.tool
    async def give() -> list[Sum]:
        """Give it."""
        return [await soon()]

    async with connect(bridge) as client:
        assert (await client.call("give"))["structuredContent"] == {"result": [{"total": 3}]}


async def test_an_outline_has_the_wrapped_type_too() -> None:
    bridge: Bridge[None] = Bridge("values", "1", output_schemas="outline")

    @bridge.tool
    def give() -> list[str]:
        """Give it."""
        return []

    async with connect(bridge) as client:
        (tool,) = (await client.request("tools/list"))["tools"]

    assert tool["outputSchema"]["properties"] == {"result": {"type": "array", "items": {"type": "string"}}}


# --- notes and next steps ----------------------------------------------------------------------------------


def noting(answer: Answer[Any], declared: Any) -> Bridge[None]:
    return returning(declared, answer)


NOTES = {"notes": ("It is raining.",), "next": ("Take an umbrella.", "Call a taxi.")}
LINES = "Note: It is raining.\nNext: Take an umbrella.\nNext: Call a taxi."


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
@pytest.mark.parametrize(
    ("declared", "answer", "members"),
    [
        (Answer[Sum], Answer("OK", Sum(3), **NOTES), {"total": 3}),  # type: ignore[arg-type]
        (Answer[str], Answer("OK", **NOTES), {"result": "OK"}),  # type: ignore[arg-type]
        (Answer[list[int]], Answer("OK", [1], **NOTES), {"result": [1]}),  # type: ignore[arg-type]
    ],
)
async def test_notes_are_in_the_text_and_in_the_structure(
    declared: Any, answer: Any, members: dict[str, Any], revision: Revision
) -> None:
    async with connect(noting(answer, declared), revision=revision) as client:
        (tool,) = (await client.request("tools/list"))["tools"]
        result = await client.call("give")

    assert [block["text"] for block in result["content"]] == ["OK", LINES]
    if revision.structured_output:
        if tool.get("outputSchema") is not None:
            jsonschema_rs.validate(tool["outputSchema"], result["structuredContent"])
        assert result["structuredContent"] == {
            **members,
            "notes": ["It is raining."],
            "next": ["Take an umbrella.", "Call a taxi."],
        }


async def test_without_notes_nothing_is_added() -> None:
    async with connect(noting(Answer("OK", Sum(3)), Answer[Sum])) as client:
        result = await client.call("give")

    assert (len(result["content"]), result["structuredContent"]) == (1, {"total": 3})


# --- failures ----------------------------------------------------------------------------------------------


def failing(error: Exception) -> Callable[[], str]:
    def fail() -> str:
        """Fail."""
        raise error

    return fail


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_a_tool_that_raises_gives_a_result_that_the_model_can_read(
    revision: Revision, caplog: pytest.LogCaptureFixture
) -> None:
    bridge: Bridge[None] = Bridge("values", "1")
    bridge.tool(failing(RuntimeError("password=hunter2")))
    async with connect(bridge, revision=revision) as client:
        result = await client.call("fail")

    (block,) = result["content"]
    reference = block["text"].partition("(reference ")[2].partition(")")[0]
    assert result["isError"]
    assert "hunter2" not in str(result)
    assert reference in caplog.text
    assert "hunter2" in caplog.text


async def test_what_a_tool_error_says_reaches_the_model() -> None:
    bridge: Bridge[None] = Bridge("values", "1")
    bridge.tool(failing(ToolError("Nobody is home. Ring again.")))
    async with connect(bridge) as client:
        assert await client.text("fail") == "Nobody is home. Ring again."


# --- what breaks its type ---------------------------------------------------------------------------------


@dataclass
class Partial:
    x: int
    y: str


def partial() -> Partial:
    made = Partial.__new__(Partial)
    made.x = 1
    return made


class Weighed(Struct):
    weight: float
    tags: list[str] = []


BROKEN: list[tuple[str, Any, Any, str]] = [
    ("text for a number", int, "five", "the result must be an integer (got 'five')"),
    ("a number for text", str, 5, "expected str, got int"),
    ("nothing for text", str, None, "expected str, got NoneType"),
    ("nothing for an object", dict, None, "the result must be an object (got null)"),
    ("a missing member", Partial, partial(), "y is required"),
    ("no number", Weighed, Weighed(float("nan")), "weight must be a number (got null)"),
    ("a wrong item", list[Sum], [Sum("x")], "[0].total must be an integer (got 'x')"),  # type: ignore[arg-type]
    ("another literal", Literal["a", "b"], "c", "the result must be one of a, b (got 'c')"),
    ("text for a picture", Image, "nothing here", "expected Image, got str"),
    ("data among blocks", list[Text | Image], [Text("a"), 5], "item 1 must not be of the type int"),
    ("what JSON cannot say", dict, {"a": object()}, "object cannot be written as JSON"),
    (
        "an answer without its structure",
        Answer[Sum],
        Answer("three"),
        "the result must be an object (got null)",
    ),
    (
        "too long",
        Annotated[str, Meta(max_length=2)],
        "abc",
        "the result must have at most 2 characters (got 3)",
    ),
]


@pytest.mark.parametrize(
    ("declared", "value", "problem"), [case[1:] for case in BROKEN], ids=[c[0] for c in BROKEN]
)
async def test_a_result_that_breaks_its_type_is_an_error_that_names_the_tool_and_the_member(
    declared: Any, value: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(returning(declared, value)) as client:
        result = await client.call("give")

    expected = f"give returned a result that breaks its declared type: {problem}"
    assert (result["isError"], result["content"][0]["text"]) == (True, expected)
    assert "structuredContent" not in result
    assert any(record.exc_info for record in caplog.records)


UNIONS: list[Any] = [Sum | None, int | None, list[Sum | int], Literal["a", 3], Any, Tagged | Other]
KINDS = st.sampled_from(
    [str, int, float, dict, list[int], dict[str, float], Sum, Weighed, Point, Named, Colour, Level, *UNIONS]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(width=16)
    | st.sampled_from(["a", "red", "five", Sum(3), Sum("x"), Weighed(1), Weighed(float("nan")), Colour.RED])  # type: ignore[arg-type]
    | st.sampled_from([Level.HIGH, Point(1), Point(None), Tagged(1), Other(2), {"name": "n"}, {"name": 3}]),  # type: ignore[arg-type]
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(KINDS, VALUES)
def test_a_client_that_checks_results_accepts_every_one(declared: Any, value: Any) -> None:
    async def call() -> tuple[Any, Any]:
        async with connect(returning(declared, value)) as client:
            (tool,) = (await client.request("tools/list"))["tools"]
            return tool.get("outputSchema"), await client.call("give")

    schema, result = asyncio.run(call())

    if schema is not None and not result.get("isError"):
        jsonschema_rs.validate(schema, result["structuredContent"])


MIXED: list[tuple[Any, Any]] = [(list[str | Image], ["a caption", PIXEL]), (list, ["a caption", PIXEL])]


@pytest.mark.parametrize(("declared", "value"), [*MIXED, (Any, ("a caption", PIXEL))], ids=str)
async def test_a_picture_among_texts_is_sent_once(declared: Any, value: Any) -> None:
    async with connect(returning(declared, value)) as client:
        result = await client.call("give")

    assert [block["type"] for block in result["content"]] == ["text", "image"]
    assert str(result).count(PIXEL.data) == 1


class Size(BaseModel):
    width: float = Field(serialization_alias="w")


async def test_a_model_of_pydantic_is_a_result_as_pydantic_writes_it() -> None:
    async with connect(returning(Size, Size(width=3))) as client:
        assert (await client.call("give"))["structuredContent"] == {"w": 3.0}
    async with connect(returning(Size, Size.model_construct(width="x"))) as client:
        result = await client.call("give")
    assert result["content"][0]["text"].endswith("w must be a number (got 'x')")
