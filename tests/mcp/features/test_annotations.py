"""Annotations: a constraint holds or is refused, and every type that lists a schema is checked by it."""

import asyncio
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import annotated_types as at
import jsonschema_rs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from bridgehead.mcp import Bridge, Context, DeclarationError, in_memory


def declare(kind: Any, default: Any = UNSET) -> Bridge[None]:
    """Declare a tool with one parameter `value` of this type, which returns its repr."""

    def show(value: Any) -> str:
        return repr(value)

    show.__annotations__["value"] = kind
    if not isinstance(default, UnsetType):
        show.__defaults__ = (default,)
    bridge: Bridge[None] = Bridge("kinds", "1")
    bridge.tool("Show a value.")(show)
    return bridge


def schema_of(bridge: Bridge[None]) -> Any:
    return bridge.tools["show"].input_schema["properties"]["value"]


async def send(bridge: Bridge[None], value: Any) -> tuple[bool, str]:
    async with in_memory.connect(bridge) as client:
        result = await client.call("show", {"value": value})
    return not result.get("isError"), result["content"][0]["text"]


CONSTRAINTS: list[tuple[Any, dict[str, Any]]] = [
    (Annotated[int, Field(ge=1, le=10, description="How many")], {"minimum": 1, "maximum": 10}),
    (Annotated[int, at.Ge(1), at.Lt(10)], {"minimum": 1, "exclusiveMaximum": 10}),
    (Annotated[int, at.Interval(gt=1, le=10)], {"exclusiveMinimum": 1, "maximum": 10}),
    (Annotated[int, at.MultipleOf(3)], {"multipleOf": 3}),
    (Annotated[str, at.Len(2, 4)], {"minLength": 2, "maxLength": 4}),
    (Annotated[str, StringConstraints(min_length=2)], {"minLength": 2}),
    (Annotated[str, Field(pattern="^[a-c]+")], {"pattern": "^[a-c]+"}),
    (Annotated[list[int], at.MaxLen(2)], {"maxItems": 2}),
    (pydantic.conint(ge=1), {"minimum": 1}),
]


@pytest.mark.parametrize(("kind", "words"), CONSTRAINTS)
def test_constraints_of_others_are_listed(kind: Any, words: dict[str, Any]) -> None:
    assert words.items() <= schema_of(declare(kind)).items()


BRIDGES = [declare(kind) for kind, _ in CONSTRAINTS]


@given(
    st.sampled_from(BRIDGES),
    st.integers(-3, 13) | st.text("abcd", max_size=6) | st.lists(st.integers(), max_size=3),
)
def test_a_value_is_accepted_exactly_if_the_listed_schema_allows_it(bridge: Bridge[None], value: Any) -> None:
    is_accepted, _ = asyncio.run(send(bridge, value))

    assert is_accepted == jsonschema_rs.is_valid(schema_of(bridge), value)


async def test_a_limit_of_an_optional_number_is_that_of_the_number() -> None:
    bridge = declare(Annotated[int | None, Field(ge=1, description="How many")])

    assert schema_of(bridge)["description"] == "How many"
    assert [(await send(bridge, value))[0] for value in (None, 1, 0)] == [True, True, False]


def test_a_plain_string_and_a_doc_describe_a_parameter() -> None:
    assert schema_of(declare(Annotated[int, "How many"]))["description"] == "How many"
    assert schema_of(declare(Annotated[int, at.doc("How many")]))["description"] == "How many"


def test_other_metadata_is_ignored() -> None:
    assert schema_of(declare(Annotated[int, object(), at.Unit("m")])) == {"type": "integer"}


@dataclass
class Limited:
    size: Annotated[int, at.Ge(1)]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Annotated[int, at.Predicate(bool)], "Predicate"),
        (Annotated[str, Field(alias="other")], r"Field\(alias=…\)"),
        (Annotated[str, StringConstraints(to_upper=True)], "to_upper=True"),
        (list[Annotated[int, at.Predicate(bool)]], "Predicate"),
        (Limited, r"Ge\(ge=1\) of its member size; write msgspec.Meta\(ge=1\)"),
        (dict[str, list[Limited]], "of its member size"),
    ],
)
def test_a_constraint_without_a_meaning_is_refused_by_its_name(kind: Any, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        declare(kind)


@pytest.mark.parametrize(
    ("kind", "default"),
    [(int, Field(3, ge=1)), (int, Meta(ge=1)), (str, object()), (Annotated[int, Meta(ge=1)], 0), (int, "x")],
)
def test_a_default_that_does_not_fit_is_refused(kind: Any, default: Any) -> None:
    with pytest.raises(DeclarationError, match=r"parameter value has the default .* does not fit"):
        declare(kind, default)


def test_a_default_may_be_none_and_stands_in_the_annotation_too() -> None:
    assert "value" not in declare(str, None).tools["show"].input_schema.get("required", ())
    assert schema_of(declare(Annotated[int, Field(default=3, ge=1)]))["default"] == 3


# --- types ------------------------------------------------------------------------------------------------


class Cat(TypedDict):
    kind: Literal["cat"]
    lives: int


@dataclass
class Dog:
    tricks: list[str]
    kind: Literal["dog"] = "dog"


class Tree(Struct):
    name: str
    branches: "list[Tree]" = []


class Point(NamedTuple):
    x: int
    y: int


class Model(BaseModel):
    size: int = Field(ge=1)
    name: str = Field("x", alias="called")


@pydantic.dataclasses.dataclass
class Checked:
    size: Annotated[int, Field(ge=1)]


@dataclass
class Holder:
    model: Model
    count: Annotated[int, Field(le=3, description="How many")] = 1


def _is_even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


TYPES: list[tuple[Any, Any, str, Any]] = [
    (Path, "a/b", "PosixPath('a/b')", 3),
    (re.Pattern[str], "a+", "re.compile('a+')", "a("),
    (Cat | Dog, {"kind": "dog", "tricks": []}, "Dog(tricks=[], kind='dog')", {"kind": "cow"}),
    (Cat | Dog | None, {"kind": "cat", "lives": 9}, "{'kind': 'cat', 'lives': 9}", {"kind": "cat"}),
    (Tree, {"name": "a", "branches": [{"name": "b"}]}, "Tree(name='a'", {"name": "a", "branches": [{}]}),
    (Point, [1, 2], "Point(x=1, y=2)", [1]),
    (Model, {"size": 1, "called": "me"}, "Model(size=1, name='me')", {"size": 0}),
    (list[Model | None], [None, {"size": 1}], "[None, Model(size=1", [{"size": 0}]),
    (Checked, {"size": 1}, "Checked(size=1)", {"size": 0}),
    (Holder, {"model": {"size": 1}, "count": 3}, "Holder(model=Model", {"model": {"size": 1}, "count": 4}),
    (Annotated[int, AfterValidator(_is_even)], 2, "2", 3),
    (datetime, "2026-03-01T12:00:00Z", "datetime.datetime(2026, 3, 1", "noon"),
    (date, "2026-03-01", "datetime.date(2026, 3, 1)", "today"),
    (UUID, "6b0e8d7a-0000-4000-8000-000000000000", "UUID(", "6b"),
    (tuple[int, int], [1.0, "2"], "(1, 2)", [1]),
]


@pytest.mark.parametrize(("kind", "good", "shown", "bad"), TYPES)
async def test_a_type_reads_what_fits_and_refuses_the_rest(
    kind: Any, good: Any, shown: str, bad: Any
) -> None:
    bridge = declare(kind)

    accepted = await send(bridge, good)
    assert accepted[0], accepted
    assert accepted[1].startswith(shown)
    refused = await send(bridge, bad)
    assert not refused[0]
    assert refused[1].startswith("Invalid arguments for show: value")


@pytest.mark.parametrize(("kind", "good"), [case[:2] for case in TYPES[:-1]])
def test_the_schema_of_a_type_is_flat_and_allows_what_fits(kind: Any, good: Any) -> None:
    schema = schema_of(declare(kind))

    assert "$ref" not in str(schema)
    assert jsonschema_rs.is_valid(schema, good, validate_formats=True)


@pytest.mark.parametrize(
    ("kind", "example"),
    [(datetime, "2026-03-01T12:00:00Z"), (date, "2026-03-01"), (UUID, "6b0e8d7a-")],
)
async def test_the_error_for_a_format_shows_an_example(kind: Any, example: str) -> None:
    bridge = declare(kind)

    assert "format" in schema_of(bridge)
    assert example in (await send(bridge, "x"))[1]


@pytest.mark.parametrize(
    ("pattern", "value", "in_a_browser"),
    [
        ("b", "abc", True),
        ("^a$", "a\n", False),
        (r"^\d$", "٣", False),
        (r"^a\Z", "a\n", False),
        ("^[0-9]$", "٣", False),
    ],
)
async def test_a_pattern_is_unanchored_and_differs_from_ecma_262_in_two_ways(
    pattern: str,
    value: str,
    in_a_browser: bool,  # noqa: FBT001 - a case of the table
) -> None:
    """A dollar sign matches before the last line break, and a digit may be of any script (docs/engine.md)."""
    accepted, _ = await send(declare(Annotated[str, Meta(pattern=pattern)]), value)

    assert accepted == (in_a_browser or pattern in {"^a$", r"^\d$"})


@dataclass
class Square:
    side: float


@dataclass
class Circle:
    radius: float


def test_a_union_without_a_literal_member_is_refused() -> None:
    with pytest.raises(DeclarationError, match="a member of its own Literal"):
        declare(Square | Circle)


# --- functions --------------------------------------------------------------------------------------------


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap as decorators for retries and timing do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def test_a_decorated_function_keeps_its_parameters() -> None:
    bridge: Bridge[None] = Bridge("kinds", "1")

    @bridge.tool
    @logged
    @logged
    def add(a: int, b: int = 2, ctx: Context | None = None) -> int:
        """Add two numbers."""
        assert ctx is not None
        return a + b

    async with in_memory.connect(bridge) as client:
        assert set(bridge.tools["add"].input_schema["properties"]) == {"a", "b"}
        assert (await client.call("add", {"a": 1}))["structuredContent"] == {"result": 3}


async def test_a_callable_object_is_a_tool() -> None:
    class Adder:
        def __call__(self, a: int, b: int = 2) -> int:
            return a + b

    bridge: Bridge[None] = Bridge("kinds", "1")
    bridge.tool("Add two numbers.", name="add")(Adder())

    async with in_memory.connect(bridge) as client:
        assert (await client.call("add", {"a": 1}))["structuredContent"] == {"result": 3}
