"""Forms: a tool's JSON Schema as a form that a person fills in, and what they filled in as arguments. Pure.

Texts, numbers, choices, and yes or no have fields of their own; whatever is more than that is typed as JSON.
What is left empty is left out, so that the tool's own default holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from .html import NOTHING, Html, tag

ARGUMENT = "arg."
"""What the names of the fields begin with, so that they are not taken for ours."""
_LONG_TEXT = 200
_LONG_NAMES = ("code", "content", "prompt", "text", "source", "instructions", "edit")


class InvalidField(Exception):
    """A field that cannot be read; the words are for whoever typed it."""

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
    least: float | None = None
    most: float | None = None
    default: str = ""
    """How the tool's own default is written, where it has one."""


def read_fields(schema: Mapping[str, Any]) -> list[Field]:
    """Read which fields a tool has; the required ones first."""
    required = set(schema.get("required") or ())
    found = [
        _read_field(name, _resolve(part, schema), is_required=name in required)
        for name, part in (schema.get("properties") or {}).items()
    ]
    return sorted(found, key=lambda field: not field.is_required)


def _resolve(part: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference into the schema's own definitions, and leave `null` out of a choice of types."""
    part = part if isinstance(part, dict) else {}
    found: dict[str, Any] = dict(part)
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        target = (schema.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))
        found = {**(target if isinstance(target, dict) else {}), **part}
    kinds = [one for one in found.get("anyOf") or () if isinstance(one, dict) and one.get("type") != "null"]
    if len(kinds) == 1:
        found = {**found, **kinds[0]}
    return found


def _read_field(name: str, part: Mapping[str, Any], *, is_required: bool) -> Field:
    kind = part.get("type")
    choices = part.get("enum")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "json")
    if isinstance(choices, list) and all(isinstance(one, str) for one in choices):
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
        least=part.get("minimum"),
        most=part.get("maximum"),
        default="" if default is None else written,
    )


def write_field(field: Field, value: str, problem: str = "") -> Html:
    """Make the label and the control of a field, with what was typed before."""
    name = ARGUMENT + field.name
    about = [part for part in (field.about, f"Default: {field.default}" if field.default else "") if part]
    described = [f"{name}-about"] * bool(about) + [f"{name}-problem"] * bool(problem)
    common = {
        "id": name,
        "name": name,
        "required": field.is_required and field.kind != "string",
        "aria_describedby": " ".join(described) or None,
        "aria_invalid": "true" if problem else None,
    }
    mark = tag("span", "required", class_="required") if field.is_required else NOTHING
    return tag(
        "div",
        tag("label", field.name, " ", mark, for_=name),
        tag("p", " ".join(about), class_="about", id=f"{name}-about") if about else NOTHING,
        _write_control(field, value, common),
        tag("p", problem, class_="problem", id=f"{name}-problem") if problem else NOTHING,
        class_="field",
    )


def _write_control(field: Field, value: str, common: dict[str, Any]) -> Html:
    if field.kind in {"choice", "boolean"}:
        choices = field.choices if field.kind == "choice" else ("true", "false")
        options = [tag("option", one, value=one, selected=one == value) for one in choices]
        return tag("select", tag("option", "", value=""), options, **common)
    if field.kind in {"integer", "number"}:
        step = "1" if field.kind == "integer" else "any"
        return tag("input", type="number", step=step, min=field.least, max=field.most, value=value, **common)
    is_long = len(value) > _LONG_TEXT or any(word in field.name.lower() for word in _LONG_NAMES)
    if field.kind == "json" or "\n" in value or is_long:
        rows = 3 if field.kind == "json" else 6
        hint = "JSON" if field.kind == "json" else None
        return tag(
            "textarea",
            "\n" if value.startswith("\n") else NOTHING,  # browsers drop the first line break of a textarea
            value,
            rows=rows,
            placeholder=hint,
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
            wanted = expected.get(field.kind, f"JSON ({error})")
            raise InvalidField(field.name, f"Expected {wanted}.") from None
    return arguments
