"""Values: what a person types as `key=value`, made into what a tool's schema asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from bridgehead.runtime.errors import InvalidArgument

Schema = dict[str, Any]
_FROM_FILE = "@"


def arguments(pairs: Iterable[str], schema: Schema, read_file: Callable[[str], str]) -> dict[str, Any]:
    """Make a call's arguments of `key=value` pairs; `key=@path` takes a text from a file."""
    properties: dict[str, Schema] = schema.get("properties", {})
    made: dict[str, Any] = {}
    for pair in pairs:
        key, found, text = pair.partition("=")
        if not found or key not in properties:
            raise _unknown(pair if not found else key, properties)
        if text.startswith(_FROM_FILE):
            text = read_file(text.removeprefix(_FROM_FILE))
        made[key] = value(key, text, properties[key])
    missing = [key for key in schema.get("required", []) if key not in made]
    if missing:
        raise InvalidArgument(f"{', '.join(missing)} missing.", next_step=f"Right would be: {usage(schema)}")
    return made


def usage(schema: Schema) -> str:
    """Show what a tool takes: required ones first as they are declared, the others in brackets."""
    required = schema.get("required", [])
    shown = [
        f"{key}={kind(one)}" if key in required else f"[{key}={kind(one)}]"
        for key, one in schema.get("properties", {}).items()
    ]
    return " ".join(shown) or "nothing"


def kind(schema: Schema) -> str:
    """Name what a property holds, in a word or by its choices."""
    if "enum" in schema:
        return "|".join(str(one) for one in schema["enum"])
    if "anyOf" in schema:
        return "|".join(dict.fromkeys(kind(one) for one in schema["anyOf"] if one.get("type") != "null"))
    named: str = schema.get("type", "json")
    return {"array": "json", "object": "json", "string": "text"}.get(named, named)


def value(key: str, text: str, schema: Schema) -> Any:
    """Read one value as its schema wants it; a schema of several kinds takes the first that fits."""
    if "anyOf" in schema:
        return _first_fitting(key, text, schema["anyOf"])
    named = schema.get("type")
    if named == "string" or "enum" in schema:
        return text
    try:
        decoded = json.loads(text)
    except ValueError:
        raise _misfit(key, text, schema) from None
    if not _fits(decoded, named):
        raise _misfit(key, text, schema)
    return decoded


def _first_fitting(key: str, text: str, kinds: list[Schema]) -> Any:
    ordered = sorted(kinds, key=lambda one: one.get("type") == "string")  # any text is a string
    for one in ordered:
        try:
            return value(key, text, one)
        except InvalidArgument:
            continue
    raise _misfit(key, text, {"anyOf": kinds})


def _fits(decoded: Any, named: str | None) -> bool:
    if isinstance(decoded, bool) or named == "boolean":
        return isinstance(decoded, bool) and named in {"boolean", None}
    types: dict[str | None, type | tuple[type, ...]] = {
        "integer": int,
        "number": (int, float),
        "array": list,
        "object": dict,
        "null": type(None),
        None: object,
    }
    return isinstance(decoded, types.get(named, object))


def _misfit(key: str, text: str, schema: Schema) -> InvalidArgument:
    shown = text if len(text) <= 40 else f"{text[:40]}…"  # noqa: PLR2004 - what fits into a line
    right = f"Right would be: {key}={kind(schema)}"
    return InvalidArgument(f"{key}={shown!r} does not fit.", next_step=right)


def _unknown(what: str, properties: dict[str, Schema]) -> InvalidArgument:
    known = ", ".join(properties) or "none"
    return InvalidArgument(f"{what!r} is not key=value with a known key.", next_step=f"Keys: {known}.")
