"""Misfits: what is wrong with arguments, and arguments that only look wrong to a strict decoder."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Raw

from .. import jsonrpc

_PATH = re.compile(r" - at `(.*)`$")
_EXACT = 2**53
"""Above this a float stands for more than one whole number."""
_STEP = re.compile(r"\.([^.\[]+)|\[")


def worded(problem: str, schema: dict[str, Any]) -> str:
    """Add to a problem the values or the properties that the schema has at its place."""
    place = _PATH.search(problem)
    options = _options(schema, place[1] if place else "$")
    if "unknown field" in problem:
        known = [name for option in options for name in option.get("properties", {})]
        return f"{problem} (known: {', '.join(known) or 'none'})"
    if "Invalid enum value" in problem:
        allowed = [str(value) for option in options for value in option.get("enum", ()) if value is not None]
        return f"{problem} (allowed: {', '.join(allowed)})" if allowed else problem
    return problem


def with_whole_numbers(raw: Raw) -> Raw | None:
    """Write numbers like `1.0` as `1`: JSON Schema counts both as integers. None where there are none."""
    found = False

    def whole(value: Any) -> Any:
        nonlocal found
        if isinstance(value, dict):
            return {name: whole(member) for name, member in value.items()}
        if isinstance(value, list):
            return [whole(item) for item in value]
        if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
            found = True
            return int(value)
        return value

    try:
        rewritten = whole(jsonrpc.decode_value(raw))
    except jsonrpc.UNDECODABLE:
        return None
    return Raw(jsonrpc.encode(rewritten)) if found else None


def _options(schema: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """Give what may stand at a path like `$.messages[0].role`, of which there can be several."""
    found = _alternatives(schema)
    for name in _STEP.findall(path):
        under = [option.get("properties", {}).get(name) if name else option.get("items") for option in found]
        found = [option for one in under if isinstance(one, dict) for option in _alternatives(one)]
    return found


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    alternatives: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return alternatives
