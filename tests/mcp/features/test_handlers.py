"""Handlers: plain and asynchronous ones are told apart by what they are, not by running them."""

from functools import partial
from typing import Any

import pytest

from bridgehead.mcp import Arguments, Context
from bridgehead.mcp.features.handlers import input_type, is_async, settle


class Named(Arguments):
    name: str


def plain(args: Named, ctx: Context[None]) -> str:
    return args.name


async def waiting(args: Named, ctx: Context[None]) -> str:
    return args.name


class Callable:
    async def __call__(self, args: Named, ctx: Context[None]) -> str:
        return args.name


def test_a_coroutine_function_is_told_from_a_plain_one() -> None:
    assert not is_async(plain)
    assert is_async(waiting)
    assert is_async(partial(waiting))
    assert not is_async(partial(plain))
    assert is_async(Callable().__call__)


async def test_a_value_is_given_whether_it_is_there_or_still_to_come() -> None:
    async def later() -> str:
        return "later"

    values: list[Any] = ["now", later()]
    assert [await settle(value) for value in values] == ["now", "later"]


@pytest.mark.parametrize("handler", [plain, waiting])
def test_the_first_parameter_says_what_a_handler_takes(handler: object) -> None:
    assert input_type(handler) is Named  # type: ignore[arg-type]
