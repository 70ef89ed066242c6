"""Handlers: which functions are called as they are, and values that are there or still to come."""

from typing import Any

from bridgehead.mcp.features.handlers import make_handler, settle
from tests.mcp.features.test_parameters import alone, apart, beside, plain, unannotated


def test_a_function_that_takes_a_struct_and_the_context_is_its_own_handler() -> None:
    assert [make_handler(function) is function for function in (plain, unannotated)] == [True, True]
    assert [make_handler(function) is function for function in (alone, apart, beside)] == [False] * 3


async def test_a_value_is_given_whether_it_is_there_or_still_to_come() -> None:
    async def soon() -> str:
        return "soon"

    values: list[Any] = ["now", soon()]
    assert [await settle(value) for value in values] == ["now", "soon"]
