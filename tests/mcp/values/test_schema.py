"""Schemas: flat whatever the types are, or refused where that cannot be."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from bridgehead.mcp.values.schema import (
    describe_fields,
    flat_schema,
    input_schema,
    mirrored_headers,
    output_outline,
    output_schema,
)


class Leaf(Struct):
    value: Annotated[int, Meta(ge=1)]


class Branch(Struct):
    left: Annotated[Leaf, Meta(description="The left one.")]
    right: Leaf | None = None
    many: list[Leaf] = []
    named: dict[str, Leaf] = {}


class Endless(Struct):
    inner: "Endless | None" = None


def test_a_struct_inside_of_a_struct_is_written_out() -> None:
    schema = flat_schema(Branch)
    leaf = {
        "type": "object",
        "properties": {"value": {"type": "integer", "minimum": 1}},
        "required": ["value"],
    }

    assert schema["properties"]["left"] == {**leaf, "description": "The left one."}
    assert schema["properties"]["right"] == {"anyOf": [leaf, {"type": "null"}], "default": None}
    assert schema["properties"]["many"]["items"] == leaf
    assert schema["properties"]["named"]["additionalProperties"] == leaf
    assert "$" not in str(schema)
    assert "title" not in schema


class Choices(Struct):
    """Said in documents, not in a tool list."""

    color: Literal["red", "blue"] = "red"
    size: Literal["s", "l"] | None = None
    count: Annotated[int, Meta(ge=1, description="How many")] | None = None
    either: int | str | None = None
    nothing: int | None = 5
    enum: Literal[1, 2] = 1
    """A property may have the name of a keyword."""


def test_an_input_has_types_for_its_choices_and_no_null_that_means_left_out() -> None:
    assert input_schema(Choices)["properties"] == {
        "color": {"type": "string", "enum": ["blue", "red"], "default": "red"},
        "size": {"type": "string", "enum": ["l", "s"]},
        "count": {"description": "How many", "type": "integer", "minimum": 1},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "nothing": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
        "enum": {"type": "integer", "enum": [1, 2], "default": 1},
    }


class Strict(Struct, forbid_unknown_fields=True):
    value: int = 0


class Described(Struct, forbid_unknown_fields=True):
    """A class."""

    inner: Annotated[Strict, Meta(description="A field.")]


def test_an_input_is_described_by_its_fields_and_says_once_that_it_is_strict() -> None:
    schema = input_schema(Described)

    assert "A class." in str(flat_schema(Described))
    assert "A class." not in str(schema)
    assert schema["properties"]["inner"]["description"] == "A field."
    assert str(schema).count("additionalProperties': False") == 1
    assert "required" not in input_schema(Choices)


class Sparse(Choices, omit_defaults=True):
    leaf: Leaf | None = None
    leaves: list[Leaf] = []


def test_an_outline_has_the_members_of_an_answer_and_nothing_of_what_is_inside() -> None:
    assert output_outline(Branch) == {
        "type": "object",
        "properties": {
            "left": {"type": "object", "description": "The left one."},
            "right": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            "many": {"type": "array", "items": {"type": "object"}},
            "named": {"type": "object"},
        },
    }


def test_an_outline_speaks_of_null_only_where_null_is_sent() -> None:
    properties = output_outline(Sparse)["properties"]

    assert properties["leaf"] == {"type": "object"}
    assert properties["size"] == {"type": "string", "enum": ["l", "s"]}
    assert {"type": "null"} in output_outline(Choices)["properties"]["size"]["anyOf"]


def test_an_output_keeps_its_nulls() -> None:
    properties = output_schema(Choices)["properties"]

    assert properties["size"] == {
        "anyOf": [{"type": "string", "enum": ["l", "s"]}, {"type": "null"}],
        "default": None,
    }
    assert {"type": "null"} in properties["count"]["anyOf"]


def test_a_type_that_contains_itself_is_shown_two_levels_deep() -> None:
    schema = flat_schema(Endless)

    assert "$ref" not in str(schema)
    assert str(schema).count("'properties'") == 2


def test_each_field_is_described_with_whether_it_is_required() -> None:
    assert describe_fields(Branch) == {
        "left": ("The left one.", True),
        "right": (None, False),
        "many": (None, False),
        "named": (None, False),
    }


def test_headers_that_mirror_properties_are_found_at_any_depth() -> None:
    schema: dict[str, Any] = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "odd": True,
            "number": {"type": "string", "x-mcp-header": 5},
            "place": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
        }
    }

    assert mirrored_headers(schema) == {"mcp-param-region": ("region",), "mcp-param-city": ("place", "city")}
    assert mirrored_headers({"type": "object"}) == {}
