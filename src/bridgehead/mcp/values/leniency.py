"""Leniency: arguments that mean what the schema asks for, though a strict decoder refuses them.

Two habits of real clients, both harmless: null for an optional argument that was left out (mcp-use, CrewAI,
LlamaIndex), and `1.0` for an integer, which JSON Schema counts as one. A bridge may also accept "5" for an
integer, as many models send it; our own are strict, as their contracts are. Nothing else is guessed. If a
type takes null itself, null keeps its meaning.
"""

from __future__ import annotations

import re
from typing import Any

from .argument_errors import Schema, alternatives, choose, kinds_of

_EXACT = 2**53
"""Above this a float stands for more than one whole number."""
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def normalize(value: Any, schema: Schema, *, numeric_strings: bool = False) -> Any:
    """Return a value with nulls left out and whole numbers as integers, wherever the schema wants that."""
    if isinstance(value, float) or (numeric_strings and isinstance(value, str)):
        return _whole(value, schema)
    if not isinstance(value, dict | list):
        return value
    options = choose(value, schema)
    if len(options) != 1:
        return value
    if isinstance(value, dict):
        return _object(value, options[0], numeric_strings)
    first, rest = options[0].get("prefixItems", ()), options[0].get("items")
    inner = [*first, *([rest] * (len(value) - len(first)))]
    return [
        normalize(item, schema, numeric_strings=numeric_strings) if isinstance(schema, dict) else item
        for item, schema in zip(value, inner, strict=False)
    ]


def _object(value: dict[str, Any], schema: Schema, numeric_strings: bool) -> dict[str, Any]:  # noqa: FBT001
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    others = schema.get("additionalProperties")
    normal = {}
    for name, member in value.items():
        inner = properties.get(name, others)
        if not isinstance(inner, dict):
            normal[name] = member
        elif member is not None or name in required or name not in properties or choose(None, inner):
            normal[name] = normalize(member, inner, numeric_strings=numeric_strings)
    return normal


def _whole(value: float | str, schema: Schema) -> Any:
    kinds = {kind for option in alternatives(schema) for kind in kinds_of(option)}
    if "integer" not in kinds or "number" in kinds:
        return value
    if isinstance(value, str):
        return int(value) if "string" not in kinds and _INTEGER.fullmatch(value) else value
    return int(value) if value.is_integer() and abs(value) < _EXACT else value
