"""Formats: whether an answer has the form that was asked for.

A JSON Schema is checked by jsonschema-rs. It comes from outside, so it may not fetch anything, its patterns
run in linear time, and it is refused before the call where it is no schema.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn

import jsonschema_rs
import msgspec
from msgspec import UNSET

from ..errors import ApiFailed, InvalidCall
from ..tools.arguments import ResponseFormat

_LONGEST = 300


def check_schema(expected: ResponseFormat | None) -> None:
    """Refuse a schema that is none, before anything is spent on it."""
    if expected is not None and expected.json_schema is not UNSET:
        _validator(msgspec.json.encode(expected.json_schema.schema))


def check(expected: ResponseFormat, content: str) -> None:
    """Raise where an answer does not have the form that was asked for; the answer is in the error."""
    if expected.type == "text":
        return
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise _mismatch(f"it is not JSON ({problem})", content) from problem
    if expected.json_schema is UNSET:
        if not isinstance(value, dict):
            raise _mismatch("it is not a JSON object", content)
        return
    found = next(_validator(msgspec.json.encode(expected.json_schema.schema)).iter_errors(value), None)
    if found is not None:
        path = "/".join(str(step) for step in found.instance_path)
        raise _mismatch(f"at /{path}: {found.message[:_LONGEST]}", content)


@lru_cache(64)
def _validator(schema: bytes) -> Any:
    try:
        return jsonschema_rs.validator_for(
            schema.decode(), retriever=_nothing, pattern_options=jsonschema_rs.RegexOptions()
        )
    except ValueError as problem:
        raise InvalidCall(
            f"response_format.json_schema.schema is no usable JSON Schema: {str(problem)[:_LONGEST]}",
            "INVALID_SCHEMA",
            next_step="Correct the schema; references to other documents are not followed.",
        ) from problem


def _nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is another document")


def _mismatch(why: str, content: str) -> ApiFailed:
    return ApiFailed(
        f"The answer does not have the form that was asked for: {why}",
        "FORMAT_MISMATCH",
        next_step="`content` has the answer. Call again, or ask for a simpler form or more max_tokens.",
        content=content,
    )
