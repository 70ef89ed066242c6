"""Leniency: arguments that mean what the schema asks for, though a strict decoder refuses them.

Two habits of real clients, both harmless: null for an optional argument that was left out (mcp-use, CrewAI,
LlamaIndex), and `1.0` for an integer, which JSON Schema counts as one. Nothing else is guessed: a string of
digits stays a string. Where a type takes null itself, null keeps its meaning.
"""

from __future__ import annotations

from typing import Any

from .argument_errors import Schema, alternatives, choose

_EXACT = 2**53
"""Above this a float stands for more than one whole number."""


def normalize(value: Any, schema: Schema) -> Any:
    """Return a value with nulls left out and whole floats as integers, wherever the schema wants that."""
    if isinstance(value, float):
        return _whole(value, schema)
    if not isinstance(value, dict | list):
        return value
    options = choose(value, schema)
    if len(options) != 1:
        return value
    return _object(value, options[0]) if isinstance(value, dict) else _array(value, options[0])


def _object(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    others = schema.get("additionalProperties")
    normal = {}
    for name, member in value.items():
        inner = properties.get(name, others)
        if not isinstance(inner, dict):
            normal[name] = member
        elif member is not None or name in required or name not in properties or choose(None, inner):
            normal[name] = normalize(member, inner)
    return normal


def _array(value: list[Any], schema: Schema) -> list[Any]:
    inner = schema.get("items")
    return [normalize(item, inner) for item in value] if isinstance(inner, dict) else value


def _whole(value: float, schema: Schema) -> Any:
    kinds = {option.get("type") for option in alternatives(schema)}
    is_wanted = "integer" in kinds and "number" not in kinds
    return int(value) if is_wanted and value.is_integer() and abs(value) < _EXACT else value
