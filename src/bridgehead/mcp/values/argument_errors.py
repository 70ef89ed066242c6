"""Argument errors: says all that is wrong with arguments, in one sentence that a model can act on.

The decoder refuses arguments; this finds out why, by walking the value along the JSON Schema of its type. It
runs only after a refusal. The walk is as deep as the schema, so no input can make it deeper, and each value
is looked at once for each alternative that the schema has for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

Schema = dict[str, Any]

_LONGEST_SHOWN = 60
_LONGEST_MEANT = 1000
"""A longer text is not read to find out what it would be without quotes."""
_MAX_PROBLEMS = 10
_WHOLE = "the arguments"
_PATH = re.compile(r" - at `\$\.?(.*)`$")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_EXPECTED = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`)?")
_UNKNOWN = re.compile(r"Invalid enum value (.*)")
_EXAMPLES = {
    "Invalid RFC3339 encoded datetime": "a date and time, such as 2026-03-01T12:00:00Z",
    "Invalid RFC3339 encoded date": "a date, such as 2026-03-01",
    "Invalid RFC3339 encoded time": "a time, such as 12:00:00",
    "Invalid ISO8601 duration": "a duration, such as PT90S",
    "Invalid UUID": "a UUID, such as 6b0e8d7a-2f4c-4d1b-9a53-0c1d2e3f4a5b",
    "Invalid base64 encoded string": "base64, such as aGVsbG8=",
}
"""The decoder's words about formats, and what it expects."""
_DECODER_KINDS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


def describe(value: Any, schema: Schema, refusal: str, whole: str = _WHOLE) -> str:
    """Say what is wrong with a value; `refusal` is the decoder's own message, the fallback.

    `whole` is what to call a value that is wrong as a whole.
    """
    problems = list(islice(_problems(value, schema, ""), _MAX_PROBLEMS + 1))
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = ["there are more problems"]
    text = "; ".join(problems)
    return text.replace(_WHOLE, whole, 1) if text.startswith(_WHOLE) else text or reword(refusal, whole)


def describe_strings(value: Any, schema: Schema, refusal: str) -> str:
    """Say what is wrong with a prompt's arguments, each of which is a string, whatever its type."""
    strings = {"type": "object", "additionalProperties": {"type": "string"}}
    problem = next(_problems(value, strings, ""), None)
    if problem is not None:
        return problem
    converted = {name: _from_string(text, schema["properties"].get(name, {})) for name, text in value.items()}
    return describe(converted, schema, refusal)


def _from_string(text: str, schema: Schema) -> Any:
    """Convert a string as the decoder does for a type other than string; unreadable ones stay strings."""
    kinds = {kind for option in alternatives(schema) for kind in kinds_of(option)}
    for kind, read in (("integer", int), ("number", float)):
        if kind in kinds:
            with suppress(ValueError):
                return read(text)
    return text


def reword(refusal: str, whole: str = _WHOLE) -> str:
    """Put the decoder's words into ours: "Expected `int` - at `$.x`" becomes "x must be an integer".

    `whole` is what to call a value that is wrong as a whole.
    """
    place = _PATH.search(refusal)
    path = place[1] if place else ""
    text = refusal[: place.start()] if place else refusal
    if missing := _MISSING.fullmatch(text):
        return _missing(path, missing[1])
    if expected := _EXPECTED.fullmatch(text):
        got = f" (got {_in_words(expected[2])})" if expected[2] else ""
        return f"{path or whole} must be {_in_words(expected[1])}{got}"
    if unknown := _UNKNOWN.fullmatch(text):
        return f"{path or whole} cannot be {unknown[1]}"
    if example := _EXAMPLES.get(text):
        return f"{path or whole} must be {example}"
    return f"{path}: {text}" if path else text


def _in_words(kinds: str) -> str:
    return " or ".join(_NAMES.get(_DECODER_KINDS.get(kind, kind), kind) for kind in kinds.split(" | "))


def kind_of(value: Any) -> str:
    """Name a decoded value's JSON type; a whole float is an integer, as JSON Schema has it."""
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return _KINDS.get(type(value), "object")


def choose(value: Any, schema: Schema) -> list[Schema]:
    """Return the alternatives of a schema that can hold a value, by its type and its tag."""
    options = [option for option in alternatives(schema) if _has_kind(value, option)]
    tag = schema.get("discriminator", {}).get("propertyName")
    if tag is None or not isinstance(value, dict):
        return options
    return [option for option in options if value.get(tag) in option["properties"][tag].get("enum", ())]


def alternatives(schema: Schema) -> list[Schema]:
    """Return the alternatives that a schema allows: its `anyOf`, or itself."""
    schemas: list[Schema] = schema.get("anyOf", [schema])
    return schemas


def _has_kind(value: Any, schema: Schema) -> bool:
    kinds = kinds_of(schema)
    kind = kind_of(value)
    return not kinds or kind in kinds or (kind == "integer" and "number" in kinds)


def kinds_of(schema: Schema) -> tuple[str, ...]:
    """Name the types a schema allows; empty if it allows any."""
    kind = schema.get("type", ())
    if not kind and "enum" in schema:
        return tuple(dict.fromkeys(kind_of(value) for value in schema["enum"]))
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _problems(value: Any, schema: Schema, path: str) -> Iterator[str]:
    options = choose(value, schema)
    if not options:
        yield _wrong_kind(value, schema, path)
        return
    # A value fits if it fits one alternative. Otherwise report the problems with the first one.
    first = list(islice(_problems_with(value, options[0], path), _MAX_PROBLEMS + 1))
    if first and all(any(_problems_with(value, option, path)) for option in options[1:]):
        yield from first


def _wrong_kind(value: Any, schema: Schema, path: str) -> str:
    options = alternatives(schema)
    allowed = [item for option in options for item in option.get("enum", ()) if item is not None]
    if allowed and all("enum" in option or option.get("type") == "null" for option in options):
        return _not_allowed(value, allowed, path)
    tag = schema.get("discriminator", {}).get("propertyName")
    if tag is not None and isinstance(value, dict):
        tags = [item for option in options for item in option["properties"][tag]["enum"]]
        return _not_allowed(value[tag], tags, _join(path, tag)) if tag in value else _missing(path, tag)
    names = [_NAMES[kind] for option in options for kind in kinds_of(option) if kind != "null"]
    wanted = " or ".join(dict.fromkeys(names))
    return f"{path or _WHOLE} must be {wanted} (got {_shown(value)}){_how_to_send(value, options)}"


def _how_to_send(value: Any, options: list[Schema]) -> str:
    """Say how to send a value that is right except for its quotes: models often quote numbers and lists."""
    if not isinstance(value, str) or len(value) > _LONGEST_MEANT:
        return ""
    try:
        meant = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if not any(_has_kind(meant, option) for option in options):
        return ""
    shown = value if len(value) <= _LONGEST_SHOWN else _NAMES[kind_of(meant)]
    return f": send {shown} without quotes around it"


def _problems_with(value: Any, schema: Schema, path: str) -> Iterator[str]:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        yield _not_allowed(value, [item for item in allowed if item is not None], path)
    elif "anyOf" in schema:  # a union inside of another
        yield from _problems(value, schema, path)
    elif isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _array_problems(value, schema, path)
    elif isinstance(value, str):
        yield from _size_problems(len(value), schema, path, "Length", "character")
        pattern = schema.get("pattern")
        if pattern is not None and not re.search(pattern, value):
            yield f"{path or _WHOLE} must match the pattern {pattern} (got {_shown(value)})"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_problems(value, schema, path)


def _object_problems(value: dict[str, Any], schema: Schema, path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, member in value.items():
        inner = properties.get(name, others)
        if inner is False:
            valid = f"valid properties are {', '.join(properties)}" if properties else "there are none"
            yield f"{_join(path, _short(name))} is not a known property; {valid}"
        elif isinstance(inner, dict):
            yield from _problems(member, inner, _join(path, name))
    for name in schema.get("required", ()):
        if name not in value:
            yield _missing(path, name)
    yield from _size_problems(len(value), schema, path, "Properties", "property")


def _array_problems(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    yield from _size_problems(len(value), schema, path, "Items", "item")
    first = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    for place, item in enumerate(value):
        inner = first[place] if place < len(first) else rest
        if isinstance(inner, dict):
            yield from _problems(item, inner, f"{path}[{place}]")


def _size_problems(size: int, schema: Schema, path: str, word: str, unit: str) -> Iterator[str]:
    minimum, maximum = schema.get(f"min{word}"), schema.get(f"max{word}")
    if minimum is not None and size < minimum:
        yield f"{path or _WHOLE} must have at least {_counted(minimum, unit)} (got {size})"
    if maximum is not None and size > maximum:
        yield f"{path or _WHOLE} must have at most {_counted(maximum, unit)} (got {size})"


def _counted(number: int, unit: str) -> str:
    if number == 1:
        return f"1 {unit}"
    return f"{number} {unit.removesuffix('y') + 'ies' if unit.endswith('y') else unit + 's'}"


_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": ("greater than", lambda value, bound: value > bound),
    "exclusiveMaximum": ("less than", lambda value, bound: value < bound),
}


def _number_problems(value: float, schema: Schema, path: str) -> Iterator[str]:
    broken = [
        word for word, (_, holds) in _BOUNDS.items() if word in schema and not holds(value, schema[word])
    ]
    if broken and "minimum" in schema and "maximum" in schema:
        between = f"between {schema['minimum']} and {schema['maximum']}"
        yield f"{path or _WHOLE} must be {between} (got {_shown(value)})"
    elif broken:
        yield f"{path or _WHOLE} must be {_BOUNDS[broken[0]][0]} {schema[broken[0]]} (got {_shown(value)})"
    step = schema.get("multipleOf")
    if step is not None and value % step:
        yield f"{path or _WHOLE} must be a multiple of {step} (got {_shown(value)})"


def _not_allowed(value: Any, allowed: list[Any], path: str) -> str:
    if len(allowed) == 1:
        return f"{path or _WHOLE} must be {allowed[0]} (got {_shown(value)})"
    return f"{path or _WHOLE} must be one of {', '.join(map(str, allowed))} (got {_shown(value)})"


def _missing(path: str, name: str) -> str:
    return f"{_join(path, name)} is required"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def _shown(value: Any) -> str:
    """Show a value as JSON; only the type of a large one."""
    if isinstance(value, str):
        return repr(_short(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list) or value is None:
        return _NAMES[kind_of(value)]
    return _short(str(value))
