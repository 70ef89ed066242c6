"""Examples: arguments made from a JSON Schema, to try a tool with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

_TEXTS = (
    "a",
    "1",
    "01",
    "2026-03-01",
    "a.js",
    "abc",
    "A1",
    "home",
    "example",
    "a@example.org",
    "https://example.org/",
)
"""Tried against a pattern."""
_FORMATS = {
    "date-time": "2026-03-01T12:00:00Z",
    "date": "2026-03-01",
    "time": "12:00:00Z",
    "duration": "PT90S",
    "uuid": "6b0e8d7a-2f4c-4d1b-9a53-0c1d2e3f4a5b",
    "uri": "https://example.org/",
    "email": "a@example.org",
    "regex": "a+",
}


def several(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the least arguments that fit, and all of them; nothing if none could be made."""
    least = make({**schema, "properties": _only_required(schema)})
    whole = make(schema)
    yielded: list[Any] = []
    for arguments in (least, whole):
        if arguments not in yielded and jsonschema_rs.is_valid(schema, arguments):
            yielded.append(arguments)
            yield arguments


def _only_required(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {name: properties[name] for name in schema.get("required", ()) if name in properties}


def make(schema: Any) -> Any:
    """Make a value for a schema; it may not fit if the schema is unusual, so validate it."""
    if not isinstance(schema, dict):
        return None
    for word in ("default", "const"):
        if word in schema:
            return schema[word]
    if "enum" in schema:
        return schema["enum"][0]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return make(schema[word][0])
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: make(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        first = [make(inner) for inner in schema.get("prefixItems", ())]
        return first + [make(schema.get("items", {}))] * (max(schema.get("minItems", 1), 1) - len(first))
    if kind in {"integer", "number"}:
        return _number(schema)
    return {"boolean": False, "null": None}[kind] if kind in {"boolean", "null"} else _text(schema)


def _number(schema: dict[str, Any]) -> Any:
    step = schema.get("multipleOf", 1)
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    value = -(-max(least, step if most is None or step <= most else least) // step) * step
    return value if most is None or value <= most else most


def _text(schema: dict[str, Any]) -> str:
    if "format" in schema and schema["format"] in _FORMATS:
        return _FORMATS[schema["format"]]
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    for text in _TEXTS:
        shown = text.ljust(least, "a") if most is None else text.ljust(least, "a")[:most]
        if jsonschema_rs.is_valid(schema, shown):
            return shown
    return _TEXTS[0]
