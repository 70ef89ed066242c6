"""Conforming: an example value for a JSON Schema, for answers and tool arguments that have to follow one.

Covers the keywords that schemas for language models use; `pattern` is ignored.
"""

from __future__ import annotations

from typing import Any

_DEEPEST = 8
"""Depth from which optional properties are left out, so that a recursive schema ends."""
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
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = kind[0]
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
        match kind:
            case "object":
                required = schema.get("required", ())
                return {
                    name: self._of(part, depth + 1)
                    for name, part in schema.get("properties", {}).items()
                    if depth < _DEEPEST or name in required
                }
            case "array":
                fixed_items = [self._of(part, depth + 1) for part in schema.get("prefixItems", ())]
                minimum = schema.get("minItems", 0 if depth >= _DEEPEST else 1)
                missing = range(minimum - len(fixed_items))
                return fixed_items + [self._of(schema.get("items", {}), depth + 1) for _ in missing]
            case "string":
                text = _FORMATS.get(schema.get("format", ""), self._words)
                text = text.ljust(schema.get("minLength", 0), ".")
                return text[: schema.get("maxLength", len(text))]
            case "integer":
                return int(_number(schema, step=1))
            case "number":
                return _number(schema, step=0.5)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                raise KeyError(kind)

    def _resolved(self, schema: Schema) -> Schema:
        """Follow references, merge `allOf`, and choose the first of `anyOf` or `oneOf`."""
        for _ in range(_DEEPEST):
            if "$ref" in schema:
                target: Any = self._root
                for step in schema["$ref"].removeprefix("#").strip("/").split("/"):
                    target = target.get(step, {}) if step else target
                schema = dict(target) | {name: part for name, part in schema.items() if name != "$ref"}
                continue
            chosen: list[Schema] = next(
                (schema[key][:1] for key in ("anyOf", "oneOf") if schema.get(key)), []
            )
            parts = [*schema.get("allOf", []), *chosen]
            if not parts:
                break
            schema = {name: part for name, part in schema.items() if name not in {"allOf", "anyOf", "oneOf"}}
            for part in parts:
                properties = schema.get("properties", {}) | part.get("properties", {})
                required = [*schema.get("required", ()), *part.get("required", ())]
                schema = schema | part
                if properties:  # the part's own would hide the others'
                    schema |= {"properties": properties, "required": required}
        return schema


def _number(schema: Schema, step: float) -> float:
    """Return the smallest allowed multiple of `step`, or the largest if there is only an upper bound."""
    step = float(schema.get("multipleOf", step))
    lower: float | None = schema.get("minimum", schema.get("exclusiveMinimum"))
    upper: float | None = schema.get("maximum", schema.get("exclusiveMaximum"))
    if lower is not None:
        value = -(-lower // step) * step
        return value + step if value == schema.get("exclusiveMinimum") else value
    if upper is not None:
        value = upper // step * step
        return value - step if value == schema.get("exclusiveMaximum") else value
    return step


def example(schema: Schema, words: str) -> Any:
    """Return a value that a schema accepts, with `words` as its strings.

    Raises ValueError if no value can be made: it is no schema, or its recursion has no end.
    """
    try:
        return Example(schema, words).value()
    except (AttributeError, KeyError, RecursionError, TypeError, ZeroDivisionError) as error:
        raise ValueError("Invalid schema: no value can be made for it.") from error
