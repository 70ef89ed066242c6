"""Docstrings: the description of a tool and of its parameters, in the usual styles."""

from collections.abc import Callable
from typing import Annotated

import pytest
from msgspec import Meta

from bridgehead.mcp import Bridge
from tests.support.checked import connect


def google(place: str, days: int = 3) -> str:
    """Forecast the weather.

    Takes
    a second.

    Args:
        place: A city,
            such as Oslo
        days (int): How many days

    Returns:
        place: not this one
    """
    return place * days


def sphinx(place: str, days: int = 3) -> str:
    """Forecast the weather.

    Takes a second.

    :param place: A city, such as Oslo
    :param int days: How many days
    :returns: a sentence
    """
    return place * days


def numpy(place: str, days: int = 3) -> str:
    """Forecast the weather.

    Takes a second.

    Parameters
    ----------
    place : str
        A city, such as Oslo
    days
        How many days

    Returns
    -------
    str
    """
    return place * days


def annotated(
    place: Annotated[str, Meta(description="A city, such as Oslo")],
    days: Annotated[int, Meta(description="How many days")] = 3,
) -> str:
    """Forecast the weather.

    Takes a second.

    Args:
        place: not this one
    """
    return place * days


@pytest.mark.parametrize("function", [google, sphinx, numpy, annotated])
async def test_descriptions_come_from_the_docstring_or_the_types(function: Callable[..., str]) -> None:
    bridge: Bridge[None] = Bridge("weather", "1")
    bridge.tool()(function)
    async with connect(bridge) as client:
        (tool,) = (await client.request("tools/list"))["tools"]
    properties = tool["inputSchema"]["properties"]

    assert tool["description"] == "Forecast the weather.\n\nTakes a second."
    assert [properties[name]["description"] for name in ("place", "days")] == [
        "A city, such as Oslo",
        "How many days",
    ]
