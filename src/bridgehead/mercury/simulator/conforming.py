"""Conforming: an example value for a JSON Schema, for answers and tool arguments that have to follow one.

Covers what schemas for language models are made of; a `pattern` is not tried to be met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_DEEPEST = 8
"""Where a schema refers to itself, optional properties are left out from here on."""
_FORMATS = {
    "date": "2026-07-28",
    "date-time": "2026-07-28T12:00:00Z",
    "email": "ada@example.org",
    "time": "12:00:00Z",
    "uri": "https://example.org/",
    "uuid": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
}

Schema = dict[str, Any]


class Example:
    """Makes values for one schema and the definitions in it."""

    def __init__(self, root: Schema, words: str) -> None:
        self._root = root
        self._words = words
        self._makers: dict[str, Callable[[Schema, int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda *_: True,
            "null": lambda *_: None,
        }

    def value(self) -> Any:
        """Return a value that the schema accepts."""
        return self._of(self._root, 0)

    def _of(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict):
            return self._words
        schema = self._resolved(schema)
        for fixed in ("const", "default"):
            if fixed in schema:
                return schema[fixed]
        if schema.get("enum"):
            return schema["enum"][0]
        return self._makers[_kind(schema)](schema, depth)

    def _resolved(self, schema: Schema) -> Schema:
        """Follow references, merge what has to hold together, and choose the first of alternatives."""
        for _ in range(_DEEPEST):
            if "$ref" in schema:
                rest = {name: part for name, part in schema.items() if name != "$ref"}
                schema = self._definition(schema["$ref"]) | rest
                continue
            chosen: list[Schema] = next(
                (schema[key][:1] for key in ("anyOf", "oneOf") if schema.get(key)), []
            )
            parts = [*schema.get("allOf", []), *chosen]
            if not parts:
                break
            schema = _merged(schema, parts)
        return schema

    def _definition(self, reference: str) -> Schema:
        place: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            place = place.get(step, {}) if step else place
        return dict(place)

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        return {
            name: self._of(part, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if depth < _DEEPEST or name in required
        }

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        fixed = [self._of(part, depth + 1) for part in schema.get("prefixItems", ())]
        least = schema.get("minItems", 0 if depth >= _DEEPEST else 1)
        more = [self._of(schema.get("items", {}), depth + 1) for _ in range(least - len(fixed))]
        return fixed + more

    def _string(self, schema: Schema, depth: int) -> str:
        text = _FORMATS.get(schema.get("format", ""), self._words)
        text = text.ljust(schema.get("minLength", 0), ".")
        return text[: schema.get("maxLength", len(text))]

    def _integer(self, schema: Schema, depth: int) -> int:
        return int(self._number(schema, depth, step=1))

    def _number(self, schema: Schema, depth: int, step: float = 0.5) -> float:
        step = float(schema.get("multipleOf", step))
        least: float | None = schema.get("minimum", schema.get("exclusiveMinimum"))
        most: float | None = schema.get("maximum", schema.get("exclusiveMaximum"))
        if least is not None:
            value = -(-least // step) * step
            return value + step if value == schema.get("exclusiveMinimum") else value
        if most is not None:
            value = most // step * step
            return value - step if value == schema.get("exclusiveMaximum") else value
        return step


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
    return str(kind)


def _merged(schema: Schema, parts: list[Schema]) -> Schema:
    rest = {name: part for name, part in schema.items() if name not in {"allOf", "anyOf", "oneOf"}}
    for part in parts:
        properties = rest.get("properties", {}) | part.get("properties", {})
        required = [*rest.get("required", ()), *part.get("required", ())]
        rest = rest | part
        if properties:
            rest |= {"properties": properties, "required": required}
    return rest


def example(schema: Schema, words: str) -> Any:
    """Return a value that a schema accepts, with the given words where there is room for some.

    Raises ValueError where no value can be made, because it is no schema or has no end.
    """
    try:
        return Example(schema, words).value()
    except (AttributeError, KeyError, RecursionError, TypeError, ZeroDivisionError) as error:
        raise ValueError("Invalid schema: no value can be made for it.") from error
