"""Tool arguments: what a person types as `key=value`, made into what a tool's schema asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from bridgehead.runtime.settings import FLAG

Schema = dict[str, Any]
_FROM_FILE = "@"
_LONGEST = 40
"""Characters of a wrong value that are repeated."""


class InvalidToolArgument(ValueError):
    """Something that was typed does not fit; says what would."""

    def __init__(self, reason: str, expected: str) -> None:
        super().__init__(f"{reason}. Expected {expected}.")
        self.reason = reason
        self.expected = expected


def arguments(pairs: Iterable[str], schema: Schema, read_file: Callable[[str], str]) -> dict[str, Any]:
    """Make a call's arguments of `key=value` pairs; `key=@path` takes a text from a file, `@@` is an @."""
    properties: dict[str, Schema] = schema.get("properties", {})
    made: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise InvalidToolArgument(f"{pair!r} is not key=value", usage(schema))
        if key not in properties:
            raise InvalidToolArgument(f"unknown argument {key!r}", usage(schema))
        if key in made:
            raise InvalidToolArgument(f"{key} is given twice", usage(schema))
        if text.startswith(_FROM_FILE):
            text = text.removeprefix(_FROM_FILE)
            text = text if text.startswith(_FROM_FILE) else _content(key, text, read_file)
        made[key] = value(key, text, properties[key])
    missing = [key for key in schema.get("required", []) if key not in made]
    if missing:
        raise InvalidToolArgument(f"missing {', '.join(missing)}", usage(schema))
    return made


def _content(key: str, path: str, read_file: Callable[[str], str]) -> str:
    try:
        return read_file(path)
    except (OSError, ValueError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is not text in UTF-8"
        raise InvalidToolArgument(f"{path!r} cannot be read: {reason}", f"{key}=@FILE") from None


def usage(schema: Schema) -> str:
    """Show what a tool takes, in the order of its declaration; what may be left out is in brackets."""
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
    if "enum" in schema:
        return _chosen(key, text, schema)
    named = schema.get("type")
    try:
        text.encode()  # half a character, as a shell or an escape of JSON can give it, is no text
        if named == "string":
            return text
        decoded = FLAG.parse(text) if named == "boolean" else _json(text)
    except ValueError:
        raise _misfit(key, text, schema) from None
    if not _fits(decoded, named):
        raise _misfit(key, text, schema)
    return decoded


def _json(text: str) -> Any:
    """Decode JSON as other programs know it: without NaN and infinity, and with whole characters only."""
    decoded = json.loads(text)
    json.dumps(decoded, ensure_ascii=False, allow_nan=False).encode()
    return decoded


def _chosen(key: str, text: str, schema: Schema) -> Any:
    for one in schema["enum"]:
        if str(one) == text:
            return one
    raise _misfit(key, text, schema)


def _first_fitting(key: str, text: str, kinds: list[Schema]) -> Any:
    ordered = sorted(kinds, key=lambda one: one.get("type") == "string")  # any text is a string
    for one in ordered:
        try:
            return value(key, text, one)
        except InvalidToolArgument:
            continue
    raise _misfit(key, text, {"anyOf": kinds})


def _fits(decoded: Any, named: str | None) -> bool:
    if isinstance(decoded, bool):  # which Python takes for an integer
        return named in {"boolean", None}
    types: dict[str | None, type | tuple[type, ...]] = {
        "integer": int,
        "number": (int, float),
        "array": list,
        "object": dict,
        "null": type(None),
        None: object,
    }
    return isinstance(decoded, types.get(named, object))


def _misfit(key: str, text: str, schema: Schema) -> InvalidToolArgument:
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return InvalidToolArgument(f"{key}={shown!r} is not valid", f"{key}={kind(schema)}")
