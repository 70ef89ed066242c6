"""A server as authors of other SDKs write it: after changing the lines that the docs name, it works whole."""

import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from bridgehead.mcp import Bridge, Context, PromptMessage, Text
from tests.support.checked import connect


class Weather(BaseModel):
    temperature: float = Field(description="In °C")
    when: dt.datetime = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    tags: list[str] = []


class Location(TypedDict):
    latitude: float
    longitude: float


@dataclass
class Profile:
    name: str
    age: int
    email: str | None = None


@asynccontextmanager
async def lifespan(_bridge: Bridge[Any]) -> AsyncIterator[dict[str, int]]:
    yield {"rows": 3}


bridge: Bridge[dict[str, int]] = Bridge("ported", "1", lifespan=lifespan)


@bridge.tool()
def weather(city: str, unit: Annotated[str, "C or F"] = "C") -> Weather:
    """Weather of a city."""
    return Weather(temperature=22.5)


@bridge.tool()
def location(city: str) -> Location:
    """Where a city is."""
    return Location(latitude=1, longitude=2)


@bridge.tool()
def profile(user: str) -> Profile:
    """Profile of a user."""
    return Profile(user, 3)


@bridge.tool()
def cities() -> list[str]:
    """All cities."""
    return ["Oslo"]


@bridge.tool()
def untyped(city: str):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Anything."""
    return {"city": city}


@bridge.tool()
async def rows(ctx: Context[dict[str, int]]) -> int:
    """Rows of the database."""
    await ctx.log("info", "counting")
    return ctx.state["rows"]


@bridge.tool()
def average(
    items: list[Weather],
    first: Weather | None = None,
    day: Annotated[dt.date | None, Field(description="Which day")] = None,
) -> dict[str, float]:
    """Average of several."""
    return {"mean": sum(one.temperature for one in items) / len(items)}


@bridge.template("users://{user_id}/profile")
def user_profile(user_id: str) -> dict[str, Any]:
    """Profile of a user."""
    return {"id": user_id}


@bridge.prompt(title="Debug")
def debug(error: str) -> list[PromptMessage]:
    """Debug an error."""
    return [PromptMessage("user", Text(error)), PromptMessage("assistant", Text("What did you try?"))]


CALLS: list[tuple[str, dict[str, Any], Any]] = [
    ("weather", {"city": "Oslo"}, {"temperature": 22.5, "when": "2026-01-01T00:00:00Z", "tags": []}),
    ("location", {"city": "Oslo"}, {"latitude": 1, "longitude": 2}),
    ("profile", {"user": "ada"}, {"name": "ada", "age": 3, "email": None}),
    ("cities", {}, {"result": ["Oslo"]}),
    ("untyped", {"city": "Oslo"}, {"city": "Oslo"}),
    ("rows", {}, {"result": 3}),
    ("average", {"items": [{"temperature": 1}, {"temperature": 2}], "day": "2026-01-01"}, {"mean": 1.5}),
]


@pytest.mark.parametrize(("tool", "arguments", "structure"), CALLS, ids=[case[0] for case in CALLS])
async def test_its_tools_answer_with_what_they_declare(
    tool: str, arguments: dict[str, Any], structure: Any
) -> None:
    async with connect(bridge) as client:
        result = await client.call(tool, arguments)

    assert result["structuredContent"] == structure
    schema = bridge.tools[tool].output_schema
    assert schema is None or jsonschema_rs.is_valid(schema, structure)


async def test_its_template_and_prompt_answer_too() -> None:
    async with connect(bridge) as client:
        (read,) = (await client.request("resources/read", {"uri": "users://7/profile"}))["contents"]
        asked = await client.request("prompts/get", {"name": "debug", "arguments": {"error": "E"}})

    assert read["text"] == '{"id":"7"}'
    assert [message["role"] for message in asked["messages"]] == ["user", "assistant"]
