"""Argument errors: one sentence that says what is wrong and what is expected, at any depth."""

import time
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct, field

from bridgehead.mcp import Arguments, Bridge
from bridgehead.mcp.values.argument_errors import describe, reword
from bridgehead.mcp.values.schema import flat_schema
from tests.support.checked import connect


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class Picture(Struct, tag_field="type", tag="picture", forbid_unknown_fields=True):
    width: Annotated[int, Meta(gt=0, lt=100)]


class Even(Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            message = "the number must be even"
            raise ValueError(message)


class Everything(Arguments):
    day: Annotated[int, Meta(ge=1, le=25)] = 1
    at_least: Annotated[float, Meta(ge=0.5)] = 1.0
    at_most: Annotated[float, Meta(le=2)] = 1.0
    step: Annotated[int, Meta(multiple_of=5)] = 5
    name: Annotated[str, Meta(min_length=2, max_length=3, pattern="^[a-z]+$")] = "abc"
    color: Literal["red", "blue"] | None = None
    only: Literal["this"] = "this"
    flag: bool = False
    count_or_name: int | str = 1
    blocks: Annotated[list[Text | Picture], Meta(max_length=2)] = field(default_factory=list)
    either: str | list[Text] = ""
    scores: dict[str, int] = field(default_factory=dict)
    pair: tuple[int, str] | None = None
    even: Even | None = None


def problem_with(arguments: Any) -> str:
    schema = flat_schema(Everything)
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(arguments, Everything)
    return describe(arguments, schema, str(refused.value))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"day": 26}, "day must be between 1 and 25 (got 26)"),
        ({"day": "1"}, "day must be an integer (got '1'): send 1 without quotes around it"),
        ({"at_least": 0.25}, "at_least must be at least 0.5 (got 0.25)"),
        ({"at_most": 3}, "at_most must be at most 2 (got 3)"),
        ({"step": 7}, "step must be a multiple of 5 (got 7)"),
        ({"name": "a"}, "name must have at least 2 characters (got 1)"),
        ({"name": "abcd"}, "name must have at most 3 characters (got 4)"),
        ({"name": "a1"}, "name must match the pattern ^[a-z]+$ (got 'a1')"),
        ({"color": "green"}, "color must be one of blue, red (got 'green')"),
        ({"color": 5}, "color must be one of blue, red (got 5)"),
        ({"only": "that"}, "only must be this (got 'that')"),
        ({"flag": 1}, "flag must be a boolean (got 1)"),
        ({"count_or_name": []}, "count_or_name must be an integer or a string (got an array)"),
        ({"blocks": {}}, "blocks must be an array (got an object)"),
        ({"blocks": [{"type": "text"}]}, "blocks[0].text is required"),
        ({"blocks": [{"text": "x"}]}, "blocks[0].type is required"),
        ({"blocks": [{"type": "sound"}]}, "blocks[0].type must be one of text, picture (got 'sound')"),
        ({"blocks": [{"type": "picture", "width": 0}]}, "blocks[0].width must be greater than 0 (got 0)"),
        ({"blocks": [{"type": "picture", "width": 100}]}, "blocks[0].width must be less than 100 (got 100)"),
        (
            {"blocks": [{"type": "text", "text": "x"}] * 3},
            "blocks must have at most 2 items (got 3)",
        ),
        (
            {"blocks": [{"type": "text", "text": "x", "size": 1}]},
            "blocks[0].size is not a known property; valid properties are type, text",
        ),
        ({"either": [{"type": "text", "text": None}]}, "either[0].text must be a string (got null)"),
        ({"either": 5}, "either must be a string or an array (got 5)"),
        ({"scores": {"a": 1, "b": "x"}}, "scores.b must be an integer (got 'x')"),
        ({"pair": [1]}, "pair must have at least 2 items (got 1)"),
        ({"pair": ["a", "b"]}, "pair[0] must be an integer (got 'a')"),
        ({"even": {"number": 3}}, "even: the number must be even"),
        ([], "the arguments must be an object (got an array)"),
    ],
)
def test_the_sentence_says_where_what_is_expected_and_what_was_given(arguments: Any, problem: str) -> None:
    assert problem_with(arguments) == problem


def test_an_unknown_property_is_named_with_those_that_are_known() -> None:
    problem = problem_with({"dya": 1})

    assert problem.startswith("dya is not a known property; valid properties are day, at_least, ")


def test_long_values_and_names_are_cut() -> None:
    assert len(problem_with({"name": "A" * 10_000})) < 200
    assert len(problem_with({"day": "9" * 10_000})) < 200
    assert problem_with({"x" * 10_000: 1}).startswith("x" * 60 + "… is not a known property")


def test_a_huge_input_takes_time_in_proportion_to_its_size() -> None:
    def seconds(count: int) -> float:
        arguments = {"scores": {f"k{number}": 1 for number in range(count)} | {"last": "x"}}
        best = float("inf")
        for _ in range(5):
            started = time.process_time()
            assert "scores.last" in describe(arguments, flat_schema(Everything), "")
            best = min(best, time.process_time() - started)
        return best

    assert seconds(40_000) < 20 * max(seconds(10_000), 0.001)


@pytest.mark.parametrize(
    ("refusal", "problem"),
    [
        ("Expected `int`, got `str` - at `$.count`", "count must be an integer (got a string)"),
        ("Expected `int | str | null` - at `$`", "the arguments must be an integer or a string or null"),
        ("Invalid enum value 'grey' - at `$.colour`", "colour cannot be 'grey'"),
        ("Object missing required field `name`", "name is required"),
        ("Object missing required field `uri` - at `$.ref`", "ref.uri is required"),
        ("JSON is malformed: invalid character (byte 3)", "JSON is malformed: invalid character (byte 3)"),
        ("something of its own - at `$.x[0]`", "x[0]: something of its own"),
    ],
)
def test_the_decoders_own_words_are_put_into_ours(refusal: str, problem: str) -> None:
    assert reword(refusal) == problem


async def test_all_problems_are_told_at_once() -> None:
    strict: Bridge[None] = Bridge("strict", "1", numeric_strings=False)

    @strict.tool
    def record(
        day: Annotated[int, Meta(ge=1, le=25)],
        phase: Literal[1, 2],
        name: Annotated[str, Meta(min_length=1)],
        runs: list[int] | None = None,
    ) -> str:
        """Record."""
        return f"{day} {phase} {name} {runs}"

    async with connect(strict) as client:
        wrong = await client.text("record", {"day": 99, "phase": 3, "name": "", "runs": "[1]", "model": "x"})
        many = await client.text("record", {"day": 1, "phase": 1, "name": "a", "runs": ["x"] * 100})

    assert wrong.removeprefix("Invalid arguments for record: ").split("; ", 4) == [
        "day must be between 1 and 25 (got 99)",
        "phase must be one of 1, 2 (got 3)",
        "name must have at least 1 character (got 0)",
        "runs must be an array (got '[1]'): send [1] without quotes around it",
        "model is not a known property; valid properties are day, phase, name, runs",
    ]
    assert many.count("must be an integer") == 10
    assert many.endswith("; there are more problems")
