"""Coroutines: values that are there or still to come."""

from typing import Any

from bridgehead.mcp.coroutines import settle


async def test_a_value_is_given_whether_it_is_there_or_still_to_come() -> None:
    async def soon() -> str:
        return "soon"

    values: list[Any] = ["now", soon()]
    assert [await settle(value) for value in values] == ["now", "soon"]
