"""Handlers: the functions that a bridge declares, plain or `async`, and how the engine calls them.

The engine calls a handler with the decoded arguments and the context. A function that is written that way is
its own handler; any other gets one from `signatures`, which is imported only then.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from .parameters import STRUCT_AND_CONTEXT, parameter_names, takes_struct
from .signatures import adapt

_Value = TypeVar("_Value")


def run_in_thread(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that runs a blocking one in a thread."""

    @wraps(handler)
    async def run(arguments: Any, context: Any) -> Any:
        return await asyncio.to_thread(handler, arguments, context)

    return run


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


def make_handler(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return the callable for the engine: the function itself if it takes a struct and the context."""
    if takes_struct(function) and len(parameter_names(function)) == STRUCT_AND_CONTEXT:
        return function

    return adapt(function)
