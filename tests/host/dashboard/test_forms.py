"""Forms: a schema becomes fields, and what was typed becomes arguments that the schema means."""

from html import escape
from typing import Any

import pytest

from bridgehead.host.dashboard.forms import (
    ARGUMENT,
    InvalidField,
    fill_in_defaults,
    read_arguments,
    read_fields,
    write_field,
)
from tests.host.dashboard.test_html import HOSTILE, read

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5, "description": "How many"},
        "name": {"type": "string"},
        "phase": {"enum": ["one", "two"]},
        "level": {"enum": [1, 2]},
        "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "flag": {"type": ["boolean", "null"]},
        "items": {"type": "array"},
        "place": {"$ref": "#/$defs/Place"},
        "odd": True,
    },
    "required": ["name", "limit"],
    "$defs": {"Place": {"type": "string", "description": "Where"}},
}


def typed(**fields: str) -> dict[str, str]:
    return {ARGUMENT + name: value for name, value in fields.items()}


def test_each_property_becomes_a_field_of_its_kind_and_the_required_ones_come_first() -> None:
    fields = read_fields(SCHEMA)

    assert [field.name for field in fields[:2]] == ["limit", "name"]
    assert {field.name: field.kind for field in fields} == {
        "limit": "integer",
        "name": "string",
        "phase": "choice",
        "level": "json",
        "ratio": "number",
        "flag": "boolean",
        "items": "json",
        "place": "string",
        "odd": "json",
    }
    limit = fields[0]
    assert (limit.minimum, limit.maximum, limit.default, limit.about) == (1, 9, "5", "How many")


def test_a_field_for_json_shows_the_shape_of_what_it_takes() -> None:
    message = {
        "type": "object",
        "properties": {
            "role": {"enum": ["system", "user"]},
            "content": {"type": "string"},
            "id": {"type": "string"},
            "at": {"$ref": "#/$defs/Line"},
        },
        "required": ["role", "at"],
    }
    schema: dict[str, Any] = {
        "properties": {
            "messages": {"type": "array", "items": message},
            "tree": {"$ref": "#/$defs/Tree"},
            "format": {"type": "object"},
        },
        "$defs": {"Line": {"type": "integer"}, "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    }
    messages, tree, form = (str(write_field(field, "")) for field in read_fields(schema))

    shape = '[{"role": "system | user", "content": "…", "at": 1}]'
    assert f'placeholder="JSON, such as {escape(shape)}"' in messages
    assert 'placeholder="JSON, such as [[[[[…]]]]]"' in tree
    assert 'placeholder="JSON"' in form


def test_a_new_form_has_the_defaults_filled_in_and_sends_the_same_values() -> None:
    defaults = {
        "count": 5,
        "ratio": 0.5,
        "flag": False,
        "name": "a",
        "phase": "two",
        "days": [1],
        "none": None,
    }
    kinds = {"count": "integer", "ratio": "number", "flag": "boolean", "name": "string", "phase": "string"}
    schema: dict[str, Any] = {
        "properties": {
            name: {"default": value, **({"type": kinds[name]} if name in kinds else {})}
            for name, value in defaults.items()
        }
    }
    schema["properties"]["phase"]["enum"] = ["one", "two"]
    fields = read_fields(schema)
    filled_in = fill_in_defaults(fields)

    assert filled_in["arg.count"] == "5"
    assert read_arguments(fields, filled_in) == {k: v for k, v in defaults.items() if v is not None}
    selected = read(write_field(fields[4], filled_in["arg.phase"])).elements
    assert [a["value"] for name, a in selected if name == "option" and "selected" in a] == ["two"]


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ("", "Default: 5"),
        ("How many", "How many. Default: 5"),
        ("Ok?", "Ok? Default: 5"),
        ("How many; default 5", "How many; default 5"),
    ],
)
def test_a_default_is_named_after_the_description(about: str, text: str) -> None:
    (field,) = read_fields({"properties": {"n": {"type": "integer", "default": 5, "description": about}}})

    assert text in read(write_field(field, "")).text


def test_what_was_typed_becomes_arguments_and_what_was_not_is_left_out() -> None:
    given = typed(
        limit="3", name="", phase="two", ratio="0.5", flag="true", items="[1, null]", place="a\r\nb", level=""
    )

    assert read_arguments(read_fields(SCHEMA), given) == {
        "limit": 3,
        "name": "",
        "phase": "two",
        "ratio": 0.5,
        "flag": True,
        "items": [1, None],
        "place": "a\nb",
    }


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (typed(name="x"), "limit: This is needed."),
        (typed(name="x", limit="many"), "limit: Expected a whole number."),
        (typed(name="x", limit="1", ratio="half"), "ratio: Expected a number."),
        (typed(name="x", limit="1", flag="maybe"), "flag: Expected true or false."),
    ],
)
def test_what_cannot_be_read_is_named(given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidField) as refused:
        read_arguments(read_fields(SCHEMA), given)

    assert str(refused.value) == problem


def test_json_that_cannot_be_read_is_explained() -> None:
    with pytest.raises(InvalidField, match="items: Expected JSON"):
        read_arguments(read_fields(SCHEMA), typed(name="x", limit="1", items="[1,"))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_schema_and_a_hostile_value_are_text(text: str) -> None:
    (field,) = read_fields({"properties": {text: {"type": "string", "description": text, "default": text}}})
    page = read(write_field(field, text, text))

    assert {name for name, _ in page.elements} <= {"div", "label", "p", "input", "textarea"}
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]


def test_every_control_has_its_label_and_says_what_is_wrong_with_it() -> None:
    for field in read_fields(SCHEMA):
        page = read(write_field(field, "", "Wrong."))
        (label,) = [attributes["for"] for name, attributes in page.elements if name == "label"]
        (control,) = [one for name, one in page.elements if name in {"input", "select", "textarea"}]
        assert control["id"] == control["name"] == label
        assert f"{label}-problem" in (control["aria-describedby"] or "")
