"""Prompts: their arguments, which are typed here and text on the wire, and their messages."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from bridgehead.mcp import Arguments, Audio, Bridge, Context, Icon, Image, NoArguments, PromptMessage, Text
from tests.support.checked import STATELESS, connect


class Trip(Arguments, rename="camel"):
    city: Annotated[str, Meta(description="Where to.")]
    how_long: Annotated[int, Meta(ge=1, le=14, description="Days.")] = 1
    by: Literal["train", "bike"] = "train"
    quiet: bool = False


bridge: Bridge[None] = Bridge("guide", "1")


@bridge.prompt(
    "Plan a trip.", title="Trip", icons=(Icon("https://a.example/t.png", "image/png", ("48x48",), "dark"),)
)
def trip(args: Trip, ctx: Context[None]) -> str:
    return f"{args.how_long + 1} days in {args.city} by {args.by}, quiet: {args.quiet}"


@bridge.prompt("Say more than one thing.", name="talk")
async def several(args: NoArguments, ctx: Context[None]) -> list[PromptMessage]:
    return [
        PromptMessage("user", Text("Look.")),
        PromptMessage("assistant", Image("AAAA", "image/png")),
        PromptMessage("user", Audio("AAAA", "audio/wav")),
    ]


async def test_text_arguments_become_what_the_prompt_declares() -> None:
    async with connect(bridge) as client:
        arguments = {"city": "Bern", "howLong": "3", "by": "bike", "quiet": "true"}
        result = await client.request("prompts/get", {"name": "trip", "arguments": arguments})

    assert result == {
        "description": "Plan a trip.",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "4 days in Bern by bike, quiet: True"}}
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "city is required"),
        ({"city": 5}, "city must be a string (got 5)"),
        ({"city": "Bern", "howLong": "many"}, "howLong must be an integer (got 'many')"),
        ({"city": "Bern", "howLong": "15"}, "howLong must be between 1 and 14 (got 15)"),
        ({"city": "Bern", "by": "plane"}, "by must be one of "),
        ({"city": "Bern", "town": "Bern"}, "town"),
        ([], "the arguments must be an object (got an array)"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_with_the_place(arguments: Any, expected: str) -> None:
    async with connect(bridge) as client:
        error = await client.error("prompts/get", {"name": "trip", "arguments": arguments})

    assert error["code"] == -32602
    assert error["message"].startswith("Invalid arguments for prompt trip: ")
    assert expected in error["message"]


@pytest.mark.parametrize("params", [{"name": "talk"}, {"name": "talk", "arguments": None}])
async def test_a_prompt_without_arguments_gives_all_its_messages(params: dict[str, Any]) -> None:
    async with connect(bridge, revision=STATELESS) as client:
        messages = (await client.request("prompts/get", params))["messages"]

    assert [(m["role"], m["content"]["type"]) for m in messages] == [
        ("user", "text"),
        ("assistant", "image"),
        ("user", "audio"),
    ]


async def test_prompts_are_listed_with_their_arguments() -> None:
    async with connect(bridge) as client:
        listed = (await client.request("prompts/list"))["prompts"]

    assert listed == [
        {
            "name": "trip",
            "title": "Trip",
            "description": "Plan a trip.",
            "arguments": [
                {"name": "city", "description": "Where to.", "required": True},
                {"name": "howLong", "description": "Days."},
                {"name": "by"},
                {"name": "quiet"},
            ],
            "icons": [
                {
                    "src": "https://a.example/t.png",
                    "mimeType": "image/png",
                    "sizes": ["48x48"],
                    "theme": "dark",
                }
            ],
        },
        {"name": "talk", "description": "Say more than one thing."},
    ]


async def test_an_unknown_prompt_is_refused_with_the_names_of_the_known_ones() -> None:
    async with connect(bridge) as client:
        error = await client.error("prompts/get", {"name": "trpi"})

    assert (error["code"], error["data"]) == (-32602, {"prompts": ["trip", "talk"]})
    assert "trpi" in error["message"]
