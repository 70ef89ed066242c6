"""JSON Schema of a struct, flat: no `$ref`, no `$defs`, since some clients refuse them.

Only the shape matters to a model, so class names (`title`) are left out. A type that contains itself cannot
be written flat and is refused when its schema is first made.
"""

from __future__ import annotations

from typing import Any

import msgspec


def flat_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type with every reference replaced by what it refers to."""
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="{name}")
    flat: dict[str, Any] = _inline(schema, definitions, ())
    return flat


def _inline(schema: Any, definitions: dict[str, Any], within: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_inline(item, definitions, within) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("$ref")
    if name is None:
        return {key: _inline(value, definitions, within) for key, value in schema.items()}
    if name in within:
        message = f"{name} contains itself; a tool's schema must be flat"
        raise TypeError(message)
    target = {key: value for key, value in definitions[name].items() if key != "title"}
    siblings = {key: value for key, value in schema.items() if key != "$ref"}
    return _inline({**target, **siblings}, definitions, (*within, name))


def describe_fields(kind: type[msgspec.Struct]) -> dict[str, tuple[str | None, bool]]:
    """Return each field's encoded name with its description and whether it is required."""
    schema = flat_schema(kind)
    required = set(schema.get("required", ()))
    return {
        name: (prop.get("description"), name in required)
        for name, prop in schema.get("properties", {}).items()
    }


def mirrored_headers(schema: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the path of each property that has an `x-mcp-header`, by the lower-case name of its header."""
    found: dict[str, tuple[str, ...]] = {}
    _collect_headers(schema, (), found)
    return found


def _collect_headers(
    schema: dict[str, Any], path: tuple[str, ...], found: dict[str, tuple[str, ...]]
) -> None:
    for name, prop in schema.get("properties", {}).items():
        if not isinstance(prop, dict):
            continue
        header = prop.get("x-mcp-header")
        if isinstance(header, str):
            found[f"mcp-param-{header.lower()}"] = (*path, name)
        _collect_headers(prop, (*path, name), found)


_FORM_KEYWORDS = (
    "type",
    "title",
    "description",
    "enum",
    "default",
    "minLength",
    "maxLength",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "items",
)


def form_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of a form that a client can show: plain fields, in the few words that forms have."""
    schema = flat_schema(kind)
    properties = {name: _form_field(name, prop) for name, prop in schema.get("properties", {}).items()}
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _form_field(name: str, prop: dict[str, Any]) -> dict[str, Any]:
    options = [option for option in prop.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:  # what may be missing is simply not required
        prop = {**prop, **options[0]}
    if "enum" in prop:
        prop = {"type": "string", **prop}
    if prop.get("type") not in ("string", "integer", "number", "boolean", "array"):
        message = f"A form cannot show the field {name!r}: only text, numbers, yes or no, and choices"
        raise TypeError(message)
    return {word: prop[word] for word in _FORM_KEYWORDS if prop.get(word) is not None}
