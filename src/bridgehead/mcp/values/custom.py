"""Custom types: values that msgspec does not know, as JSON and back.

Paths and patterns are strings. A `CustomType` is made for one declaration, such as a union whose members
differ in a `Literal`. Everything that decodes, encodes or describes an author's types passes these hooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, get_origin

import msgspec


class _AnyInstance(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return True  # msgspec checks what `read` returns, which is never of this type


class CustomType(metaclass=_AnyInstance):
    """Base of types that exist only to tell msgspec how a value is read, and what its schema is."""

    read: Callable[[Any], Any]
    schema: Callable[[], dict[str, Any]]
    write: Callable[[Any], Any]


def make_custom(
    name: str,
    read: Callable[[Any], Any],
    schema: Callable[[], dict[str, Any]],
    write: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """Make a type: `read` takes decoded JSON and raises ValueError, `write` returns what can be encoded."""
    members = {"read": staticmethod(read), "schema": staticmethod(schema), "write": staticmethod(write)}
    return _AnyInstance(name, (CustomType,), members)


def read_custom(kind: Any, value: Any) -> Any:
    """Turn decoded JSON into a value of the type (msgspec's `dec_hook`)."""
    kind = get_origin(kind) or kind
    if issubclass(kind, CustomType):
        return kind.read(value)
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")  # noqa: TRY004 - becomes an argument error
    if issubclass(kind, PurePath):
        return kind(value)
    if kind is re.Pattern:
        try:
            return re.compile(value)
        except re.error as problem:
            raise ValueError(f"not a regular expression: {problem}") from problem
    raise NotImplementedError


def describe_custom(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of the type (msgspec's `schema_hook`)."""
    kind = get_origin(kind) or kind
    if issubclass(kind, CustomType):
        schema: dict[str, Any] = kind.schema()
        return schema
    if issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    if kind is re.Pattern:
        return {"type": "string", "format": "regex"}
    raise NotImplementedError


def write_custom(value: Any) -> Any:
    """Turn a value into one that can be encoded (msgspec's `enc_hook`)."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, re.Pattern):
        return value.pattern
    pydantic_dump = getattr(value, "model_dump", None)  # a model where the declared type says nothing
    if pydantic_dump is not None:
        return pydantic_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


encode = msgspec.json.Encoder(enc_hook=write_custom).encode
"""Encode an author's value."""
