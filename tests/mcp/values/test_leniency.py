"""Leniency: null for what was left out, and whole floats for integers, at any depth; nothing else."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct, field

from bridgehead.mcp import Arguments, Bridge, Context
from tests.support.checked import connect


class Inner(Struct, forbid_unknown_fields=True):
    weight: int
    label: str = "none"


class Order(Arguments):
    count: Annotated[int, Meta(ge=1)]
    name: str = "nobody"
    items: list[Inner] = field(default_factory=list)
    budget: float | None = 1.0
    ratio: float = 0.5
    scores: dict[str, int] = field(default_factory=dict)


bridge: Bridge[None] = Bridge("shop", "1", numeric_strings=False)


@bridge.tool("Order.")
def order(args: Order, ctx: Context[None]) -> str:
    return repr(args)


class Trip(Arguments):
    city: str
    days: int = 3


@bridge.prompt("Plan.")
def plan(args: Trip, ctx: Context[None]) -> str:
    return f"{args.city} {args.days}"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ({"count": 1, "name": None, "items": None, "ratio": None, "scores": None}, Order(1)),
        ({"count": 2.0}, Order(2)),
        ({"count": 1, "items": [{"weight": 3.0, "label": None}]}, Order(1, items=[Inner(3)])),
        ({"count": 1, "ratio": 2.0}, Order(1, ratio=2.0)),
        ({"count": 1, "scores": {"a": 1.0}}, Order(1, scores={"a": 1})),
        ({"count": 9007199254740991.0}, Order(9007199254740991)),
    ],
)
async def test_what_means_the_same_is_taken_as_it_was_meant(arguments: dict[str, Any], meant: Order) -> None:
    async with connect(bridge) as client:
        assert await client.text("order", arguments) == repr(meant)


async def test_null_keeps_its_meaning_where_the_type_takes_it() -> None:
    async with connect(bridge) as client:
        assert await client.text("order", {"count": 1, "name": None, "budget": None}) == repr(
            Order(1, budget=None)
        )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"count": None}, "count must be an integer (got null)"),
        ({"count": "1"}, "count must be an integer (got '1')"),
        ({"count": 1.5}, "count must be an integer (got 1.5)"),
        ({"count": 1e300}, "count must be an integer"),
        ({"count": 1, "items": [None]}, "items[0] must be an object (got null)"),
        ({"count": 1, "items": [{"weight": None}]}, "items[0].weight must be an integer (got null)"),
        ({"count": 1, "scores": {"a": None}}, "scores.a must be an integer (got null)"),
        ({"count": 1, "unknown": None}, "unknown is not a known property"),
    ],
)
async def test_what_does_not_mean_the_same_is_refused(arguments: dict[str, Any], problem: str) -> None:
    async with connect(bridge) as client:
        assert problem in await client.text("order", arguments)


async def test_a_prompts_optional_argument_may_be_null_too() -> None:
    async with connect(bridge) as client:
        result = await client.request(
            "prompts/get", {"name": "plan", "arguments": {"city": "Bern", "days": None}}
        )

    assert result["messages"][0]["content"]["text"] == "Bern 3"


async def test_the_listed_schema_does_not_speak_of_null() -> None:
    async with connect(bridge) as client:
        (tool,) = (await client.request("tools/list"))["tools"]

    assert tool["inputSchema"]["properties"]["name"] == {"type": "string", "default": "nobody"}


async def test_a_string_that_is_an_integer_is_taken_for_one_unless_the_bridge_is_strict() -> None:
    lenient: Bridge[None] = Bridge("lenient", "1")

    @lenient.tool
    def add(a: int, rest: list[int] | None = None, name: int | str = 0) -> str:
        """Add."""
        return f"{a + sum(rest or [])} {name!r}"

    async with connect(lenient) as client:
        assert await client.text("add", {"a": "2", "rest": ["-3", 4], "name": "5"}) == "3 '5'"
        for wrong in ("2.0", " 2", "02", "+2", "two", "", "9" * 19):
            assert "a must be an integer" in await client.text("add", {"a": wrong})
