"""Every tool of every bridge: its schemas use only what all converters understand, and null means left out.

What the converters themselves make of them is tried in tests/frameworks.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bridgehead.mcp import Tool
from bridgehead.mcp.values.schema import input_schema
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge

NEEDED = {"MERCURY_API_KEY": "sk_0123456789abcdef"}
TOOLS = [
    tool
    for name in plugins.built_in_names()
    for tool in make_bridge(plugins.load(name), NEEDED).tools.values()
]
FREE_FORM = {"response_format", "tools.items", "messages.items.tool_calls.items"}
"""Inputs in OpenAI's form, which every model knows: they are listed in outline and checked in full."""
FREE_TOOLS = {"mercury_decide"}
"""Tools that are asked about anything, in any form."""


def schemas_in(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Name every schema inside of one, itself included."""
    if not isinstance(schema, dict):
        return
    yield path.lstrip("."), schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas_in(inner, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        yield from schemas_in(schema.get(word), f"{path}.{word}")
    for option in schema.get("anyOf", ()):
        yield from schemas_in(option, path)


def everywhere() -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in TOOLS:
        for path, schema in schemas_in(tool.input_schema):
            yield f"{tool.name} input {path}", schema
        for path, schema in schemas_in(tool.listed_output_schema):
            yield f"{tool.name} output {path}", schema


def test_there_are_tools_to_judge() -> None:
    assert len(TOOLS) > 25


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_our_bridges_declare_what_the_engine_would_accept(tool: Tool) -> None:
    """They skip the check when they are declared, to start sooner."""
    tool.check()


def test_every_schema_says_its_type() -> None:
    assert [path for path, schema in everywhere() if "type" not in schema and "anyOf" not in schema] == []


def test_no_schema_refers_to_another() -> None:
    words = {"$ref", "$defs", "discriminator", "oneOf", "allOf"}

    assert [path for path, schema in everywhere() if words & set(schema)] == []


def test_no_input_speaks_of_null() -> None:
    inputs = [(path, schema) for path, schema in everywhere() if " input " in path]

    assert [path for path, schema in inputs if "null" in str(schema.get("type"))] == []
    assert [path for path, schema in inputs if schema.get("default", 0) is None] == []


def test_a_description_stands_on_its_property() -> None:
    buried = [
        path
        for path, schema in everywhere()
        if " input " in path and len(schema.get("anyOf", ())) == 1 and "description" not in schema
    ]

    assert buried == []


def test_an_input_is_free_form_only_where_its_meaning_is() -> None:
    free = {
        path.split(" input ")[1]
        for path, schema in everywhere()
        if " input " in path
        and path.split(" ")[0] not in FREE_TOOLS
        and schema.get("type") == "object"
        and not {"properties", "additionalProperties"} & set(schema)
    }

    assert free == FREE_FORM


def example(schema: dict[str, Any]) -> Any:
    """Make the smallest value that fits a schema."""
    schema = schema.get("anyOf", [schema])[0]
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        inner = schema.get("properties", {})
        others = [f"key{number}" for number in range(schema.get("minProperties", 0))]
        return {name: example(inner[name]) for name in schema.get("required", ())} | {
            name: example(schema["additionalProperties"]) for name in others
        }
    if schema["type"] == "array":
        return [example(schema["items"])] * max(1, schema.get("minItems", 0))
    samples = {"string": "x" * schema.get("minLength", 1), "boolean": False}
    return samples.get(schema["type"], schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1))


def with_nulls(schema: dict[str, Any], value: Any) -> Any:
    """Fill in null for everything that may be left out, at every depth."""
    if isinstance(value, list):
        return [with_nulls(schema["items"], item) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    return {
        name: with_nulls(inner, value[name]) if name in value else None
        for name, inner in schema["properties"].items()
    }


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_null_means_left_out_in_every_optional_argument(tool: Tool) -> None:
    schema = input_schema(tool.input_type)  # the listed one may be an outline of it
    # Each optional argument is given once in full, so that what it holds is filled with nulls too.
    full = {name: example(inner) for name, inner in schema.get("properties", {}).items()}
    required = {name: full[name] for name in schema.get("required", ())}
    for given in (required, *({**required, name: value} for name, value in full.items())):
        plain = msgspec.Raw(msgspec.json.encode(given))
        nulls = msgspec.Raw(msgspec.json.encode(with_nulls(schema, given)))

        assert tool.decode_leniently(nulls) == tool.decode(plain)


def test_a_whole_float_is_an_integer_in_every_bridge() -> None:
    taken = set()
    for tool in TOOLS:
        schema = tool.input_schema
        required = {name: example(schema["properties"][name]) for name in schema.get("required", ())}
        for name, inner in schema.get("properties", {}).items():
            if inner.get("type") == "integer":
                whole = msgspec.json.encode({**required, name: example(inner)})
                floating = msgspec.json.encode({**required, name: float(example(inner))})
                assert tool.decode_leniently(msgspec.Raw(floating)) == tool.decode(msgspec.Raw(whole))
                taken.add(tool.bridge.info.name)

    assert len(taken) == len(plugins.built_in_names())


LISTED = [tool for tool in TOOLS if tool.visible_to == "everyone"]
UNTOLD = {
    "model",  # a setting, and the result says which model answered
    "list_files.server",  # its listing has grown enough; every other tool tells it
    "edit_file.edits.items.count",  # as of `count`
}


@pytest.mark.parametrize("tool", LISTED, ids=lambda tool: tool.name)
def test_limits_and_defaults_are_told_in_words(tool: Tool) -> None:
    """Codex and others drop `maximum` and `default` before a model sees the schema."""
    untold = []
    for path, schema in schemas_in(tool.input_schema):
        said = f"{tool.description} {schema.get('description', '')}".replace(",", "")
        for word in ("maximum", "maxItems", "default"):
            value = schema.get(word)
            is_obvious = not value or isinstance(value, bool | list | tuple)
            if not (is_obvious or str(value) in said or UNTOLD & {path, f"{tool.name}.{path}"}):
                untold.append(f"{path}: {word} {value}")
    assert untold == []
