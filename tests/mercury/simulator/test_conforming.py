"""Conforming: the example for a schema is one that an independent validator accepts."""

from typing import Any

import jsonschema_rs
import pytest

from bridgehead.mercury.simulator.conforming import Example

TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["name"],
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "null"},
        {"type": "boolean"},
        {"type": "string", "minLength": 30},
        {"type": "string", "maxLength": 3},
        {"type": "string", "format": "date-time"},
        {"type": "integer", "minimum": 17},
        {"type": "integer", "maximum": -4},
        {"type": "number", "minimum": 0.25, "maximum": 0.75},
        {"enum": ["b", "a"]},
        {"const": {"x": 1}},
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "integer"}, "minItems": 3},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        TREE,
    ],
)
def test_an_example_fits_its_schema(schema: dict[str, Any]) -> None:
    value = Example(schema, "some words to use").value()

    assert jsonschema_rs.validator_for(schema).is_valid(value), value
