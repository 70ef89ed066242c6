"""Coroutines: values that are there or still to come, and work that must not begin."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

_Value = TypeVar("_Value")


async def settle(value: _Value | Awaitable[_Value]) -> _Value:
    """Return a value, awaiting it if it is awaitable."""
    if inspect.isawaitable(value):
        awaited: _Value = await value
        return awaited
    return value


def close_unstarted(work: Coroutine[Any, Any, Any]) -> None:
    """Close a coroutine that never started, and those among its arguments, so that Python does not warn."""
    awaited = [value for value in inspect.getcoroutinelocals(work).values() if inspect.iscoroutine(value)]
    work.close()
    for inner in awaited:
        close_unstarted(inner)
