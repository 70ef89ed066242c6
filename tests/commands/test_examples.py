"""Examples: what is made from a schema fits it."""

import pytest

from bridgehead.commands import examples


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3, "multipleOf": 5},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        {"type": "string", "minLength": 12},
        {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        {"type": "array", "items": {"enum": ["x"]}, "minItems": 3},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
    ],
)
def test_an_example_fits_its_schema(schema: dict[str, object]) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"]}

    assert len(list(examples.several(whole))) == 1
