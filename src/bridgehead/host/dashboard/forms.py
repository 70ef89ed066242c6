"""Forms: writes a form for a tool's JSON Schema, and reads a filled-in form as arguments. Pure.

Strings, numbers, booleans and enums have controls of their own; every other type is typed as JSON. A new form
has the defaults of the schema filled in. An empty field is left out of the arguments, so that the tool's own
default holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from .html import NOTHING, Html, prose, tag

ARGUMENT = "arg."
"""Prefix of the fields' names: an argument named `csrf` or `bridge` must not replace a field of ours."""
_LONG_TEXT = 200
_MAX_DEPTH = 4
_LONG_NAMES = ("code", "content", "prompt", "text", "source", "instructions", "edit")


class InvalidField(Exception):
    """A field with an invalid value; the message is for the person who typed it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class Field(Struct, frozen=True):
    """One property of a tool's input."""

    name: str
    kind: str
    """`string`, `integer`, `number`, `boolean`, `choice` or `json`."""
    about: str = ""
    is_required: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    default: str = ""
    """The tool's own default as text; empty without one."""
    example: str = ""
    """The shape of JSON that the field takes; empty if it takes no JSON."""


def read_fields(schema: Mapping[str, Any]) -> list[Field]:
    """Return the fields of a tool's input, required ones first."""
    required = set(schema.get("required") or ())
    fields = [
        _read_field(name, _resolve(part, schema), schema, is_required=name in required)
        for name, part in (schema.get("properties") or {}).items()
    ]
    return sorted(fields, key=lambda field: not field.is_required)


def _resolve(part: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a `$ref` into `$defs`, and merge an `anyOf` of one type and `null` into the property."""
    part = part if isinstance(part, dict) else {}
    resolved: dict[str, Any] = dict(part)
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        target = (schema.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))
        # The property's own description and default override those of the shared definition.
        resolved = {**(target if isinstance(target, dict) else {}), **part}
    alternatives = [
        option
        for option in resolved.get("anyOf") or ()
        if isinstance(option, dict) and option.get("type") != "null"
    ]
    if len(alternatives) == 1:
        resolved = {**resolved, **alternatives[0]}
    return resolved


def _read_field(name: str, part: Mapping[str, Any], schema: Mapping[str, Any], *, is_required: bool) -> Field:
    kind = part.get("type")
    choices = part.get("enum")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "json")
    if isinstance(choices, list) and all(isinstance(choice, str) for choice in choices):
        kind = "choice"
    elif isinstance(choices, list) or kind not in {"string", "integer", "number", "boolean"}:
        kind, choices = "json", ()
    default = part.get("default")
    written = default if isinstance(default, str) else msgspec.json.encode(default).decode()
    return Field(
        name=name,
        kind=kind,
        about=str(part.get("description") or ""),
        is_required=is_required,
        choices=tuple(choices or ()),
        minimum=part.get("minimum"),
        maximum=part.get("maximum"),
        default="" if default is None else written,
        example=_write_example(part, schema) if kind == "json" else "",
    )


def _write_example(part: Any, schema: Mapping[str, Any], depth: int = 0) -> str:
    """Write JSON of the shape that a schema describes, with `…` for what it leaves open."""
    part = _resolve(part, schema)
    kind = part.get("type")
    if depth > _MAX_DEPTH:  # a definition may refer to itself
        return "…"
    if kind == "array":
        return f"[{_write_example(part.get('items'), schema, depth + 1)}]"
    if kind == "object":
        properties, required = part.get("properties") or {}, part.get("required") or ()
        # What a call needs, and the first two: a message has a role, which is required, and a content.
        shown = [name for index, name in enumerate(properties) if name in required or index < 2]  # noqa: PLR2004
        members = (f'"{name}": {_write_example(properties[name], schema, depth + 1)}' for name in shown)
        return "{" + ", ".join(members) + "}"
    choices = part.get("enum")
    if isinstance(choices, list) and choices and all(isinstance(choice, str) for choice in choices):
        return f'"{" | ".join(choices)}"'
    return {"string": '"…"', "integer": "1", "number": "1", "boolean": "true"}.get(str(kind), "…")


def fill_in_defaults(fields: list[Field]) -> dict[str, str]:
    """Return the input of an unchanged form."""
    return {ARGUMENT + field.name: field.default for field in fields}


def write_field(field: Field, value: str, problem: str = "") -> Html:
    """Write the label and the control of a field, with its last value and its error."""
    name = ARGUMENT + field.name
    about = field.about
    # Some descriptions name the default, for models.
    default = f"Default: {field.default}" if field.default and "default" not in about.lower() else ""
    if about and default:
        about += f" {default}" if about.endswith((".", "!", "?")) else f". {default}"
    about = about or default
    described = [f"{name}-about"] * bool(about) + [f"{name}-problem"] * bool(problem)
    common = {
        "id": name,
        "name": name,
        # A required string may be empty, which the browser's own check would refuse.
        "required": field.is_required and field.kind != "string",
        "aria_describedby": " ".join(described) or None,
        "aria_invalid": "true" if problem else None,
    }
    mark = tag("span", "required", class_="required") if field.is_required else NOTHING
    return tag(
        "div",
        tag("label", field.name, " ", mark, for_=name),
        tag("p", prose(about), class_="about", id=f"{name}-about") if about else NOTHING,
        _write_control(field, value, common),
        tag("p", problem, class_="problem", id=f"{name}-problem") if problem else NOTHING,
        class_="field",
    )


def _write_control(field: Field, value: str, common: dict[str, Any]) -> Html:
    if field.kind in {"choice", "boolean"}:
        choices = field.choices if field.kind == "choice" else ("true", "false")
        options = [tag("option", choice, value=choice, selected=choice == value) for choice in choices]
        return tag("select", tag("option", "", value=""), options, **common)
    if field.kind in {"integer", "number"}:
        step = "1" if field.kind == "integer" else "any"
        bounds = {"min": field.minimum, "max": field.maximum}
        return tag("input", type="number", step=step, value=value, **bounds, **common)
    is_long = len(value) > _LONG_TEXT or any(word in field.name.lower() for word in _LONG_NAMES)
    if field.kind == "json" or "\n" in value or is_long:
        rows = 3 if field.kind == "json" else 6
        hint = f"JSON, such as {field.example}" if field.example.strip("{}…") else "JSON"
        return tag(
            "textarea",
            "\n" if value.startswith("\n") else NOTHING,  # browsers drop the first line break of a textarea
            value,
            rows=rows,
            placeholder=hint if field.kind == "json" else None,
            spellcheck="false",
            **common,
        )
    return tag("input", type="text", value=value, autocomplete="off", spellcheck="false", **common)


def read_arguments(fields: list[Field], form: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a filled-in form; an empty field is left out. Raises InvalidField."""
    arguments: dict[str, Any] = {}
    for field in fields:
        text = form.get(ARGUMENT + field.name, "")
        if text == "" and not (field.is_required and field.kind == "string"):
            if field.is_required:
                raise InvalidField(field.name, "This is needed.")
            continue
        if field.kind in {"string", "choice"}:
            arguments[field.name] = text.replace("\r\n", "\n")  # forms send CRLF, whatever was typed
            continue
        try:
            arguments[field.name] = msgspec.json.decode(text.strip().encode())
        except (msgspec.DecodeError, RecursionError) as error:
            expected = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
            value_type = expected.get(field.kind, f"JSON ({error})")
            raise InvalidField(field.name, f"Expected {value_type}.") from None
    return arguments
