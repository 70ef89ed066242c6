"""Handlers: the functions that a bridge declares, plain or `async`, and how the engine calls them.

The engine calls a handler with the decoded arguments and the context. A function that is written that way is
its own handler; any other gets one from `signatures`, which is imported only then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from msgspec import Struct

from ..calls.context import Context
from ..lazy_imports import asyncio, inspect

_STRUCT_AND_CONTEXT = 2
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
    """Return what the engine calls: the function itself if it takes a struct and the context."""
    if takes_struct(function) and len(parameter_names(function)) == _STRUCT_AND_CONTEXT:
        return function
    from .signatures import adapt  # late: none of our bridges needs it, and it costs their start

    return adapt(function)


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters, without the `self` of a bound method."""
    code = getattr(function, "__code__", None)
    if code is None:  # a partial, or an object that can be called
        return tuple(inspect.signature(function).parameters)
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names[1:] if getattr(function, "__self__", None) is not None else names


def takes_struct(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is a strict struct that holds all arguments, with the context beside it."""
    names = parameter_names(function)
    if not names or len(names) > _STRUCT_AND_CONTEXT:
        return False
    annotations = getattr(function, "__annotations__", {})
    kind = annotations.get(names[0])
    if isinstance(kind, str):
        # Only this annotation is evaluated: `get_type_hints` for 20 tools takes a millisecond of the start.
        try:
            kind = eval(kind, getattr(function, "__globals__", {}))  # noqa: S307 - the author's own annotation
        except Exception:  # noqa: BLE001 - not defined yet, say; reading the whole signature tells why
            return False
    is_strict = (
        isinstance(kind, type) and issubclass(kind, Struct) and kind.__struct_config__.forbid_unknown_fields
    )
    return is_strict and all(is_context(annotations.get(name)) for name in names[1:])


def is_context(annotation: Any) -> bool:
    """Whether a parameter with this annotation, evaluated or not, takes the context; one without any does."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2].strip() == "Context"
    return annotation is None or getattr(annotation, "__origin__", annotation) is Context
