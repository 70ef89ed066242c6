"""Handlers: the functions that a bridge declares, plain or `async`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct

from ..lazy_imports import asyncio, inspect

# The flag of a coroutine function, from `inspect`, whose import would delay the first answer.
_CO_COROUTINE = 0x80
_Value = TypeVar("_Value")


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether a handler is a coroutine function."""
    code = getattr(handler, "__code__", None)
    if code is None:  # a callable object, or a partial
        return inspect.iscoroutinefunction(handler)
    return bool(code.co_flags & _CO_COROUTINE)


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


def input_type(handler: Callable[..., Any]) -> type[Struct]:
    """Return the struct that a handler's first parameter is declared with."""
    first = next(iter(inspect.signature(handler).parameters))
    kind: type[Struct] = get_type_hints(handler)[first]
    return kind
