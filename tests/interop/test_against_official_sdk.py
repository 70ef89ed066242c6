"""Signatures and values, here and in the official SDK: every difference has a reason."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

import annotated_types as at
import pytest
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from bridgehead.mcp import Bridge, in_memory


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict):
    name: str
    age: NotRequired[int]


class Model(BaseModel):
    size: int = Field(ge=1)


KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "dict": dict,
    "list": list,
    "list[int]": list[int],
    "list[str]": list[str],
    "dict[str, int]": dict[str, int],
    "int | None": int | None,
    "str | None": str | None,
    "int | str": int | str,
    "float | None": float | None,
    "Literal": Literal["a", "b"],
    "Literal of numbers": Literal[1, 2],
    "Enum": Colour,
    "dataclass": Point,
    "list of dataclasses": list[Point],
    "TypedDict": Named,
    "Model": Model,
    "list of models": list[Model],
    "Model | None": Model | None,
    "date": date,
    "datetime": datetime,
    "UUID": UUID,
    "Any": Any,
    "tuple": tuple[int, str],
    "Field ge le": Annotated[int, Field(ge=1, le=10)],
    "Field gt": Annotated[float, Field(gt=0)],
    "Field length": Annotated[str, Field(min_length=2, max_length=3)],
    "Field pattern": Annotated[str, Field(pattern="^[a-z]+$")],
    "Ge": Annotated[int, at.Ge(1)],
    "Interval": Annotated[int, at.Interval(gt=1, lt=5)],
    "Len": Annotated[list[int], at.Len(1, 2)],
    "MultipleOf": Annotated[int, at.MultipleOf(3)],
    "list[bool]": list[bool],
    "list[float]": list[float],
    "list[list[int]]": list[list[int]],
    "list of literals": list[Literal["a", "b"]],
    "dict of lists": dict[str, list[int]],
    "dict of dataclasses": dict[str, Point],
    "set[int]": set[int],
    "tuple of any length": tuple[int, ...],
    "Literal | None": Literal["a", "b"] | None,
    "Enum | None": Colour | None,
    "dataclass | None": Point | None,
    "int | float": int | float,
    "Field le": Annotated[float, Field(le=5)],
    "described": Annotated[str, "What to take"],
    "optional Ge": Annotated[int | None, Field(ge=1)],
}
VALUES: list[Any] = [
    "a", "abc", "", "5", "1.5", "red", "2026-03-01", "2026-03-01T12:00:00Z", "true", "[1]", "{}", "null",
    "6b0e8d7a-2f4c-4d1b-9a53-0c1d2e3f4a5b", 0, 1, 2, 3, 9, 10, 11, -1, 1.0, 1.5, True, False, None,
    [], [1], [1, 2], [1, 2, 3], ["a"], [1, "a"], ["1"], [None], {}, {"x": 1}, {"x": "1"}, {"y": 1},
    {"x": 1, "z": 2}, {"name": "n"}, {"name": 1}, {"name": "n", "age": 3}, {"size": 1}, {"size": 0},
    {"size": "1"}, [{"x": 1}], [{"size": 1}], [{}], {"a": 1}, {"a": "b"},
]  # fmt: skip


def reason(kind: str, value: Any, *, here: bool) -> str:
    """Say why one of the two accepts a value and the other refuses it; empty if there is no reason."""
    text = isinstance(value, str)
    if here:
        return "the SDK takes text that is JSON for its value, and then refuses that" if text else ""
    if text:
        return "the SDK decodes JSON in strings and converts strings to other types; we take integers alone"
    if isinstance(value, bool) or kind in {"bool", "list[bool]", "date", "datetime"}:
        return "the SDK converts between booleans, numbers and times"
    if isinstance(value, dict | list) and any(isinstance(one, str) for one in _parts(value)):
        return "the SDK converts strings inside of lists and objects"
    return ""


def _parts(value: Any) -> list[Any]:
    inner = list(value.values()) if isinstance(value, dict) else value
    return [one for item in inner for one in (_parts(item) if isinstance(item, dict | list) else [item])]


def make(kind: Any) -> Callable[..., str]:
    def take(value: Any) -> str:
        """Take a value."""
        return "taken"

    take.__annotations__["value"] = kind
    return take


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_values_are_accepted_but_for_reasons_that_are_listed(kind: str) -> None:
    bridge: Bridge[None] = Bridge("ours", "1")
    bridge.tool(make(KINDS[kind]))
    theirs = MCPServer("theirs")
    theirs.tool()(make(KINDS[kind]))
    unexplained = []
    async with in_memory.connect(bridge) as client:
        for value in VALUES:
            here = not (await client.call("take", {"value": value})).get("isError", False)
            try:
                result = await theirs.call_tool("take", {"value": value})
                there = not getattr(result, "is_error", False)
            except ToolError:
                there = False
            if here != there and not reason(kind, value, here=here):
                unexplained.append((value, "here" if here else "there"))

    assert unexplained == []


RESULTS: list[tuple[Any, Any]] = [
    (int, 5), (float, 1.5), (bool, True), (list[int], [1]), (dict[str, int], {"a": 1}), (Point, Point(1)),
    (Named, Named(name="n")), (Model, Model(size=1)), (int | None, None), (list[Model], [Model(size=1)]),
    (tuple[int, str], (1, "a")), (int, "five"), (Point, {"x": "a"}), (float, math.inf),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), RESULTS, ids=str)
async def test_a_result_has_the_same_structure_or_is_refused_by_both(kind: Any, value: Any) -> None:
    def give() -> Any:
        """Give it."""
        return value

    give.__annotations__["return"] = kind
    bridge: Bridge[None] = Bridge("ours", "1")
    bridge.tool(give)
    theirs = MCPServer("theirs")
    theirs.tool()(give)
    async with in_memory.connect(bridge) as client:
        ours = (await client.call("give")).get("structuredContent")
    try:
        their_result: Any = await theirs.call_tool("give", {})
        structure = their_result.structured_content
    except ToolError:
        structure = None

    if value == math.inf:  # JSON has no infinity: the SDK sends what no client can read
        assert ours is None
    else:
        assert ours == structure
