"""JSON Schema of a struct, with the few keywords that every client's converter understands.

Flat, since some clients refuse `$ref` and `$defs`; a type that contains itself is shown two levels deep.
Class names (`title`) are left out: only the shape matters to a model. An `enum` has its `type`
(Vertex and Kimi refuse it without). An input schema omits null where null only means "left out" (smolagents
turns such unions into strings, LlamaIndex loses their description); null is still accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from ..errors import DeclarationError
from .custom import describe_custom

_MAX_LEVELS = 2
"""How often a type that contains itself is shown inside itself."""


def flat_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type with every reference replaced by what it refers to."""
    return _flatten(kind, with_docstrings=True)


def _flatten(kind: Any, *, with_docstrings: bool) -> dict[str, Any]:
    (schema,), definitions = msgspec.json.schema_components(
        [kind], ref_template="{name}", schema_hook=describe_custom
    )
    dropped = {"title"} if with_docstrings else {"title", "description"}
    plain = {
        name: {key: value for key, value in definition.items() if key not in dropped}
        for name, definition in definitions.items()
    }
    flat: dict[str, Any] = inline(schema, plain)
    return flat


def input_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of a tool's input, as it is listed: described by its fields, not by its classes."""
    return _slim(_with_types(_without_nulls(_flatten(kind, with_docstrings=False))))


def output_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of a tool's structured output: null stays, since an answer may contain it."""
    return _with_types(flat_schema(kind))


def output_outline(kind: Any) -> dict[str, Any]:
    """Return a structured output with the types of its members, without nested members.

    Every conversation pays for the tool list, and a model sees the answer itself. No member is required,
    since clients validate the structured content of a failure against the same schema.
    """
    schema = _flatten(kind, with_docstrings=False)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__struct_config__.omit_defaults:
        schema = _without_nulls(schema)  # `omit_defaults` leaves its nulls out
    if "properties" not in schema:
        return _shallow(schema)
    properties = {name: _shallow(inner) for name, inner in schema["properties"].items()}
    return {"type": "object", "properties": properties}


def _shallow(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the type of a member; of an array, also the type of its items."""
    plain = _with_types({word: schema[word] for word in _SHALLOW_WORDS if word in schema})
    if isinstance(plain.get("items"), dict):
        plain["items"] = _shallow(schema["items"])
    if "anyOf" in plain:
        plain["anyOf"] = [_shallow(option) for option in schema["anyOf"]]
    return plain


_SHALLOW_WORDS = ("type", "description", "enum", "items", "anyOf")


def _slim(schema: dict[str, Any], *, is_outermost: bool = True) -> dict[str, Any]:
    """Drop keywords that cost tokens in every conversation and add nothing.

    These are an empty `required`, and `additionalProperties: false` on inner objects: the outermost has it.
    """
    plain = _change_inner(schema, partial(_slim, is_outermost=False))
    if plain.get("required") == []:
        del plain["required"]
    if plain.get("additionalProperties") is False and not is_outermost:
        del plain["additionalProperties"]
    return plain


def _with_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Give every `enum` its type."""
    plain = _change_inner(schema, _with_types)
    # An OpenAPI keyword: JSON Schema does not define it, and its mapping names our classes.
    plain.pop("discriminator", None)
    if "enum" not in plain or "type" in plain:
        return plain
    kinds = list(dict.fromkeys(_ENUM_TYPES[type(value)] for value in plain["enum"]))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, **plain}


_ENUM_TYPES: dict[type, str] = {str: "string", int: "integer", type(None): "null"}


def _without_nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from properties whose default is null: they can simply be left out."""
    plain = _change_inner(schema, _without_nulls)
    if plain.get("default", ...) is not None:
        return plain
    del plain["default"]
    if "enum" in plain:
        return {**plain, "enum": [value for value in plain["enum"] if value is not None]}
    options = [option for option in plain.pop("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        # Keep the description on the property itself, where clients' converters look for it.
        return {**options[0], **plain}
    return {**plain, "anyOf": options} if options else plain


def _change_inner(schema: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a copy with `change` applied to each direct subschema."""
    changed = dict(schema)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            changed[word] = change(schema[word])
    for word in ("anyOf", "prefixItems"):
        if word in schema:
            changed[word] = [change(option) for option in schema[word]]
    if "properties" in schema:
        changed["properties"] = {name: change(inner) for name, inner in schema["properties"].items()}
    return changed


def inline(schema: Any, definitions: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """Return a schema with each reference replaced by its definition, in the keywords that we use."""
    if isinstance(schema, list):
        return [inline(item, definitions, within) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("$ref")
    if name is not None:
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        definition = definitions[name]
        if within.count(name) >= _MAX_LEVELS:
            return {"type": definition["type"], **siblings} if "type" in definition else siblings
        return inline({**definition, **siblings}, definitions, (*within, name))
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "const" and not isinstance(value, dict):
            plain["enum"] = [value]
        elif key == "properties":  # a member may have the name of a keyword
            plain[key] = {member: inline(inner, definitions, within) for member, inner in value.items()}
        elif key == "default":
            plain[key] = value
        else:
            plain["anyOf" if key == "oneOf" else key] = inline(value, definitions, within)
    return plain


def without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, which pydantic makes of the names of members."""
    plain = _change_inner(schema, without_titles)
    plain.pop("title", None)
    return plain


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
    headers: dict[str, tuple[str, ...]] = {}
    _collect_headers(schema, (), headers)
    return headers


def _collect_headers(
    schema: dict[str, Any], path: tuple[str, ...], headers: dict[str, tuple[str, ...]]
) -> None:
    for name, prop in schema.get("properties", {}).items():
        if not isinstance(prop, dict):
            continue
        header = prop.get("x-mcp-header")
        if isinstance(header, str):
            headers[f"mcp-param-{header.lower()}"] = (*path, name)
        _collect_headers(prop, (*path, name), headers)


def check_headers(schema: dict[str, Any], label: str) -> None:
    """Refuse an `x-mcp-header` that no HTTP client could send, or that clients refuse with the whole tool."""
    seen: set[str] = set()
    for path, inner, is_reachable in _subschemas(schema, (), is_reachable=True):
        if "x-mcp-header" not in inner:
            continue
        header, kind = inner["x-mcp-header"], inner.get("type")
        problem = ""
        if not isinstance(header, str) or not re.fullmatch(_HEADER_NAME, header):
            problem = "is not the name of a header: letters, digits and -"
        elif not is_reachable:
            problem = "must be on a property that is not in a list or a union"
        elif kind not in {"string", "integer", "boolean"}:
            problem = f"must be on a string, an integer or a boolean, not on {kind or 'this type'}"
        elif header.lower() in seen:
            problem = "is declared twice"
        if problem:
            raise DeclarationError(f"{label}: the x-mcp-header {header!r} of {'.'.join(path)} {problem}.")
        seen.add(header.lower())


_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"


def _subschemas(
    schema: Any, path: tuple[str, ...], *, is_reachable: bool
) -> Iterator[tuple[tuple[str, ...], dict[str, Any], bool]]:
    """Yield each schema inside of one, with its path, and whether only properties lead to it."""
    if not isinstance(schema, dict):
        return
    yield path, schema, is_reachable and bool(path)
    for name, inner in schema.get("properties", {}).items():
        yield from _subschemas(inner, (*path, name), is_reachable=is_reachable)
    for word in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"):
        inner = schema.get(word, ())
        for one in inner if isinstance(inner, list | tuple) else (inner,):
            yield from _subschemas(one, (*path, word), is_reachable=False)


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
    """Return the schema of a form that a client can show: flat fields, with the few keywords of forms."""
    schema = flat_schema(kind)
    properties: dict[str, Any] = {}
    for name, declared in schema.get("properties", {}).items():
        options = [option for option in declared.get("anyOf", ()) if option != {"type": "null"}]
        # Forms have no unions: an optional field is one that is not required.
        prop = {**declared, **options[0]} if len(options) == 1 else declared
        if "enum" in prop:
            prop = {"type": "string", **prop}
        if prop.get("type") not in ("string", "integer", "number", "boolean", "array"):
            message = f"A form cannot show the field {name!r}: only text, numbers, yes or no, and choices"
            raise TypeError(message)
        properties[name] = {word: prop[word] for word in _FORM_KEYWORDS if prop.get(word) is not None}
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}
