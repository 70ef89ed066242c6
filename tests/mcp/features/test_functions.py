"""Ordinary functions as tools: their parameters, docstrings and context, and the mistakes authors make."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Literal

import pytest
from msgspec import Struct

from bridgehead.mcp import Arguments, Bridge, Context, DeclarationError, NoArguments
from tests.support.checked import connect


@dataclass
class Point:
    x: int
    y: int = 0


class Circle(Struct):
    radius: int


class Square(Struct):
    side: int


class Colour(Enum):
    RED = "red"


class Opaque:
    """Nothing that JSON knows."""


class Order(Arguments):
    count: int


def bridge_of(function: Callable[..., Any], *words: Any, **options: Any) -> Bridge[None]:
    bridge: Bridge[None] = Bridge("shop", "1")
    bridge.tool(*words, **options)(function)
    return bridge


async def listed(bridge: Bridge[None]) -> Any:
    async with connect(bridge) as client:
        (tool,) = (await client.request("tools/list"))["tools"]
    return tool


# --- what is accepted --------------------------------------------------------------------------------------


async def test_a_function_with_a_docstring_is_a_tool() -> None:
    bridge: Bridge[None] = Bridge("sums", "1")

    @bridge.tool
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    tool = await listed(bridge)
    async with connect(bridge) as client:
        sums = [
            (await client.call("add", given))["structuredContent"] for given in ({"a": 1}, {"a": 1, "b": 3})
        ]

    assert (tool["name"], tool["description"]) == ("add", "Add two numbers.")
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert sums == [{"result": 3}, {"result": 4}]
    assert add(1) == 3, "it is still the function that it was"


async def test_parentheses_without_anything_do_the_same() -> None:
    bridge: Bridge[None] = Bridge("sums", "1")

    @bridge.tool()
    async def wait(seconds: float) -> str:
        """Wait a while."""
        await asyncio.sleep(seconds)
        return "waited"

    async with connect(bridge) as client:
        assert await client.text("wait", {"seconds": 0}) == "waited"
    assert (await listed(bridge))["description"] == "Wait a while."


async def test_the_context_is_passed_to_who_asks_for_it() -> None:
    def first(ctx: Context[None], name: str) -> str:
        """Tell the method."""
        return f"{name}: {ctx.method}"

    def last(name: str, *, context: Context) -> str:
        """Tell the method."""
        return f"{name}: {context.method}"

    def alone(order: Order) -> str:
        """Tell the count."""
        return str(order.count)

    for function in (first, last):
        async with connect(bridge_of(function)) as client:
            assert await client.text(function.__name__, {"name": "Ada"}) == "Ada: tools/call"
    async with connect(bridge_of(alone)) as client:
        assert await client.text("alone", {"count": 5}) == "5"


async def test_a_function_may_take_nothing() -> None:
    def now() -> str:
        """Tell the time."""
        return "noon"

    tool = await listed(bridge_of(now))
    async with connect(bridge_of(now)) as client:
        assert await client.text("now") == "noon"
        assert "is not a known property" in await client.text("now", {"zone": "UTC"})
    assert tool["inputSchema"]["properties"] == {}


async def test_dataclasses_and_structs_are_arguments_and_results() -> None:
    def move(point: Point, by: Circle | None = None, steps: list[int] = [1, 2]) -> Point:  # noqa: B006
        """Move a point."""
        steps.append(by.radius if by else 0)
        return Point(point.x + sum(steps), point.y)

    async with connect(bridge_of(move)) as client:
        for _ in range(2):  # a default that was changed is not the next call's
            moved = await client.call("move", {"point": {"x": 1}, "by": {"radius": 3}})
            assert moved["structuredContent"] == {"x": 7, "y": 0}


async def test_a_method_of_an_object_and_a_partial_are_tools() -> None:
    class Shop:
        def sell(self, count: int) -> str:
            """Sell."""
            return f"sold {count}"

    def sell(shop: str, count: int) -> str:
        """Sell."""
        return f"{shop} sold {count}"

    async with connect(bridge_of(Shop().sell)) as client:
        assert await client.text("sell", {"count": 2}) == "sold 2"
    async with connect(bridge_of(partial(sell, count=3), "Sell three.", name="sell_three")) as client:
        assert await client.text("sell_three", {"shop": "Oslo"}) == "Oslo sold 3"


async def test_a_blocking_function_runs_in_a_thread() -> None:
    import threading

    def which(name: str) -> str:
        """Tell the thread."""
        return f"{name} {threading.current_thread() is threading.main_thread()}"

    async with connect(bridge_of(which, in_thread=True)) as client:
        assert await client.text("which", {"name": "Ada"}) == "Ada False"


async def test_a_prompt_takes_ordinary_parameters_too() -> None:
    bridge: Bridge[None] = Bridge("prompts", "1")

    @bridge.prompt
    def plan(city: str, days: int = 2) -> str:
        """Plan a trip.

        Args:
            city: Where to
        """
        return f"{days} days in {city}"

    async with connect(bridge) as client:
        (listed_prompt,) = (await client.request("prompts/list"))["prompts"]
        made = await client.request(
            "prompts/get", {"name": "plan", "arguments": {"city": "Bern", "days": "3"}}
        )

    assert listed_prompt["description"] == "Plan a trip."
    assert listed_prompt["arguments"][0] == {"name": "city", "description": "Where to", "required": True}
    assert made["messages"][0]["content"]["text"] == "3 days in Bern"


# --- what is refused, when it is declared -------------------------------------------------------------------


def undescribed(a: int) -> int:
    return a


def untyped(a, b: int) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Add."""
    return int(a) + b


def many(*numbers: int) -> int:
    """Add."""
    return sum(numbers)


def named(**numbers: int) -> int:
    """Add."""
    return sum(numbers.values())


def by_place(a: int, /) -> int:
    """Add."""
    return a


def opaque(thing: Opaque) -> str:
    """Look at it."""
    return str(thing)


def untagged(shape: Circle | Square) -> str:
    """Measure it."""
    return str(shape)


def gives_opaque() -> Opaque:
    """Make one."""
    return Opaque()


def gives_bytes() -> bytes:
    """Make some."""
    return b""


def gives_untagged() -> list[Circle | Square]:
    """Make some."""
    return []


def missing(thing: "Undefined") -> str:  # type: ignore[name-defined]  # noqa: F821
    """Look at it."""
    return str(thing)


async def streaming(count: int) -> AsyncIterator[int]:
    """Count."""
    for number in range(count):
        yield number


class Shop:
    def sell(self, count: int) -> str:
        """Sell."""
        return f"{self} sold {count}"


@pytest.mark.parametrize(
    ("function", "words", "options", "expected"),
    [
        (undescribed, (), {}, "Tool undescribed has no description"),
        (undescribed, (" ",), {}, "Tool undescribed has no description"),
        (undescribed, ("Add.",), {"name": "add it"}, "Tool 'add it': clients refuse this name"),
        (undescribed, ("Add.",), {"name": "a" * 65}, "Use up to 64 letters, digits, '_' and '-'"),
        (undescribed, ("Add.",), {"name": "größe"}, "clients refuse this name"),
        (untyped, (), {}, "Tool untyped: the parameter a has no type. Annotate it, for example a: str."),
        (many, (), {}, "Tool many: the parameter *numbers cannot be an argument"),
        (named, (), {}, "Tool named: the parameter **numbers cannot be an argument"),
        (by_place, (), {}, "Tool by_place: the parameter a cannot be an argument"),
        (
            opaque,
            (),
            {},
            "Tool opaque: the parameter thing has the type Opaque. It has no JSON Schema. Use str,",
        ),
        (
            untagged,
            (),
            {},
            "Tool untagged: the parameter shape has the type Circle | Square. JSON cannot tell",
        ),
        (gives_opaque, (), {}, "Tool gives_opaque returns Opaque. It has no JSON Schema"),
        (gives_bytes, (), {}, "Tool gives_bytes returns bytes."),
        (gives_untagged, (), {}, "Tool gives_untagged returns list[Circle | Square]. JSON cannot tell"),
        (missing, (), {}, "Tool missing: its signature names 'Undefined', which its module does not define"),
        (streaming, (), {}, "Tool streaming is a generator"),
        (Shop.sell, (), {}, "Tool sell is a method, and nobody would pass its 'self'"),
    ],
)
def test_a_mistake_is_told_when_it_is_made(
    function: Callable[..., Any], words: tuple[str, ...], options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        bridge_of(function, *words, **options)

    assert expected.replace("Circle | Square", "") in _plain(str(refused.value))


def _plain(message: str) -> str:
    """Leave out how Python writes a union of local classes."""
    module = __name__
    return message.replace(f"{module}.Circle | {module}.Square", "").replace("Circle | Square", "")


def forecast(place: str) -> str:
    """Forecast the weather."""
    return place


def test_a_name_is_declared_once() -> None:
    bridge = bridge_of(forecast)
    with pytest.raises(DeclarationError, match="Tool forecast is declared twice"):
        bridge.tool(forecast)


def test_a_refused_tool_leaves_the_others_as_they_are() -> None:
    bridge = bridge_of(forecast)
    with pytest.raises(DeclarationError):
        bridge.tool(opaque)

    assert list(bridge.tools) == ["forecast"]


def test_the_form_with_a_struct_stays() -> None:
    def sell(args: Order, ctx: Context[None]) -> str:
        return f"{args.count} {ctx.method}"

    def nothing(args: NoArguments, ctx: Context[None]) -> str:
        return ctx.method

    assert bridge_of(sell, "Sell.").tools["sell"].handler is sell, "called directly, as before"
    assert bridge_of(nothing, "Do nothing.").tools["nothing"].handler is nothing


@pytest.mark.parametrize("kind", [Literal["a", "b"], Colour, dict[str, int], tuple[int, str], set[int]])
async def test_usual_types_are_taken(kind: Any) -> None:
    def look(thing) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Look at it."""
        return repr(thing)

    look.__annotations__["thing"] = kind

    assert (await listed(bridge_of(look)))["inputSchema"]["required"] == ["thing"]
