"""Parameters: the names of a function's parameters, and which of them takes the context.

A declaration needs no more than this, so it does not import `inspect`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ..calls.context import Context

STRUCT_AND_CONTEXT = 2


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters, without the `self` of a bound method."""
    return tuple(inspect.signature(function).parameters)


def takes_struct(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is a strict struct that holds all arguments, with the context beside it."""
    names = parameter_names(function)
    if not names or len(names) > STRUCT_AND_CONTEXT:
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
    """Whether a parameter with this annotation, a type or its source text, takes the context.

    A parameter without an annotation (None) does.
    """
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2].strip() == "Context"
    return annotation is None or getattr(annotation, "__origin__", annotation) is Context
