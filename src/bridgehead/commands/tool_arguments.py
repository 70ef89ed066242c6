"""Tool arguments: parses `key=value` words by a tool's input schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from bridgehead.runtime.settings import FLAG

Schema = dict[str, Any]
_FROM_FILE = "@"
_TYPES: dict[str | None, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
    None: object,
}
"""Python types of the decoded values of each JSON schema type; unknown types accept anything."""
_MAX_SHOWN = 40
"""Characters of an invalid value that its error repeats."""


class InvalidToolArgument(ValueError):
    """A word does not fit the schema; `expected` describes a valid value."""

    def __init__(self, reason: str, expected: str) -> None:
        super().__init__(f"{reason}. Expected {expected}.")
        self.reason = reason
        self.expected = expected


def arguments(pairs: Iterable[str], schema: Schema, read_file: Callable[[str], str]) -> dict[str, Any]:
    """Parse `key=value` words into a call's arguments; `key=@path` reads a file, `@@` is an @."""
    properties: dict[str, Schema] = schema.get("properties", {})
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise InvalidToolArgument(f"{pair!r} is not key=value", usage(schema))
        if key not in properties:
            raise InvalidToolArgument(f"unknown argument {key!r}", usage(schema))
        if key in values:
            raise InvalidToolArgument(f"{key} is given twice", usage(schema))
        if text.startswith(_FROM_FILE):
            text = text.removeprefix(_FROM_FILE)
            if not text.startswith(_FROM_FILE):  # a second @ escapes the first
                path = text
                try:
                    text = read_file(path)
                except (OSError, ValueError) as failure:
                    reason = failure.strerror if isinstance(failure, OSError) else "it is not text in UTF-8"
                    raise InvalidToolArgument(f"{path!r} cannot be read: {reason}", f"{key}=@FILE") from None
        values[key] = value(key, text, properties[key])
    missing = [key for key in schema.get("required", []) if key not in values]
    if missing:
        raise InvalidToolArgument(f"missing {', '.join(missing)}", usage(schema))
    return values


def usage(schema: Schema) -> str:
    """Return a tool's arguments, required ones first, then the optional ones in brackets."""
    required, optional = [], []
    for key, property_schema in schema.get("properties", {}).items():
        if key in schema.get("required", []):
            required.append(f"{key}={kind(property_schema)}")
        else:
            optional.append(f"[{key}={kind(property_schema)}]")
    return " ".join(required + optional) or "no arguments"


def kind(schema: Schema) -> str:
    """Name the type of a property in a word, or list its choices."""
    if "enum" in schema:
        return "|".join(str(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        alternatives = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return "|".join(dict.fromkeys(map(kind, alternatives)))
    named: str = schema.get("type", "json")
    return {"array": "json", "object": "json", "string": "text"}.get(named, named)


def value(key: str, text: str, schema: Schema) -> Any:
    """Parse one value by its schema; of several alternatives the first that fits wins."""
    if "anyOf" in schema:
        # Strings last, because any text is one.
        for alternative in sorted(schema["anyOf"], key=lambda each: each.get("type") == "string"):
            try:
                return value(key, text, alternative)
            except InvalidToolArgument:
                continue
        raise _invalid(key, text, schema)
    if "enum" in schema:
        for choice in schema["enum"]:
            if str(choice) == text:
                return choice
        raise _invalid(key, text, schema)
    named = schema.get("type")
    try:
        text.encode()  # refuses a lone surrogate, which a shell or a JSON escape can contain
        if named == "string":
            return text
        if named == "boolean":
            return FLAG.parse(text)
        decoded = json.loads(text)
        # Python's JSON accepts NaN, infinity and lone surrogates; other programs do not.
        json.dumps(decoded, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise _invalid(key, text, schema) from None
    # A bool is an int to Python, but not to JSON schema.
    fits = named is None if isinstance(decoded, bool) else isinstance(decoded, _TYPES.get(named, object))
    if not fits:
        raise _invalid(key, text, schema)
    return decoded


def _invalid(key: str, text: str, schema: Schema) -> InvalidToolArgument:
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    return InvalidToolArgument(f"{key}={shown!r} is not valid", f"{key}={kind(schema)}")
