"""Handlers: the functions that a bridge declares, plain or `async`, and what their signatures say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct

from ..lazy_imports import asyncio, inspect

_CO_COROUTINE = 0x80
_Value = TypeVar("_Value")


def is_async(handler: Callable[..., Any]) -> bool:
    """Tell whether a handler is a coroutine function."""
    code = getattr(handler, "__code__", None)
    if code is None:  # an object that can be called, or a partial one
        return inspect.iscoroutinefunction(handler)
    return bool(code.co_flags & _CO_COROUTINE)


def run_in_thread(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Make a handler that runs a plain one in a thread, so that it may block."""

    @wraps(handler)
    async def run(arguments: Any, context: Any) -> Any:
        return await asyncio.to_thread(handler, arguments, context)

    return run


async def settle(value: _Value | Awaitable[_Value]) -> _Value:
    """Give what a handler returned, waiting for it where it is still to come."""
    if inspect.isawaitable(value):
        awaited: _Value = await value
        return awaited
    return value


def close_unstarted(work: Coroutine[Any, Any, Any]) -> None:
    """Close work that has not begun, and the work that it was to wait for."""
    awaited = [value for value in inspect.getcoroutinelocals(work).values() if inspect.iscoroutine(value)]
    work.close()
    for inner in awaited:
        close_unstarted(inner)


def input_type(handler: Callable[..., Any]) -> type[Struct]:
    """Return the struct that a handler's first parameter is declared with."""
    first = next(iter(inspect.signature(handler).parameters))
    kind: type[Struct] = get_type_hints(handler)[first]
    return kind
