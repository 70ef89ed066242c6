"""Converts tools as three vendors' SDKs do. Runs in an environment of its own, and knows nothing of ours.

Takes the tools as JSON on standard input; prints, for each converter, the tools it refuses with its reason,
and the words of JSON Schema that it drops.
"""

import copy
import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

# By name, since only the environment that this runs in has them.
ensure_strict_json_schema = import_module("agents.strict_schema").ensure_strict_json_schema
transform_schema = import_module("anthropic").transform_schema
types = import_module("google.genai").types

WORDS = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "maxItems",
    "maxLength",
    "minimum",
    "minItems",
    "minLength",
    "pattern",
    "required",
}


def convert_for_google(schema: dict[str, Any]) -> dict[str, Any]:
    parsed = types.JSONSchema.model_validate(schema)
    converted = types.Schema.from_json_schema(json_schema=parsed, raise_error_on_unsupported_field=False)
    result: dict[str, Any] = json.loads(converted.model_dump_json(exclude_none=True, by_alias=True))
    return result


CONVERTERS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "OpenAI Agents SDK, strict mode": ("inputSchema", ensure_strict_json_schema),
    "google-genai": ("inputSchema", convert_for_google),
    "Anthropic SDK, input": ("inputSchema", transform_schema),
    "Anthropic SDK, output": ("outputSchema", transform_schema),
}


def words_in(schema: Any) -> set[str]:
    """Name the words of JSON Schema in use; the names of properties are none."""
    if isinstance(schema, list):
        return set().union(*map(words_in, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    inner = [value for key, value in schema.items() if key not in {"properties", "default", "enum"}]
    return (WORDS & set(schema)).union(
        *map(words_in, inner), *map(words_in, schema.get("properties", {}).values())
    )


def main() -> None:
    tools = json.load(sys.stdin)
    found: dict[str, Any] = {}
    for name, (which, convert) in CONVERTERS.items():
        refused: dict[str, str] = {}
        dropped: set[str] = set()
        for tool in tools:
            schema = tool.get(which)
            if schema is None:
                continue
            try:
                dropped |= words_in(schema) - words_in(convert(copy.deepcopy(schema)))
            except Exception as error:  # noqa: BLE001  (whatever a converter raises is what is asked for)
                refused[tool["name"]] = f"{type(error).__name__}: {error}"[:200]
        found[name] = {"refused": refused, "dropped": sorted(dropped)}
    print(json.dumps(found))


main()
