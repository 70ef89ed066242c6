"""Misfits: what is wrong with arguments, in the decoder's words, and what would be right."""

from __future__ import annotations

import re
from typing import Any

_PATH = re.compile(r" - at `(.*)`$")
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
