"""Response format: check an answer against the call's `response_format`.

jsonschema-rs checks the JSON Schema, which is untrusted: it cannot fetch other documents, its patterns run in
linear time, and an invalid one is refused before the call costs anything.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from bridgehead.mcp import UNDECODABLE

from ..arguments import ResponseFormat
from ..completion import Completion
from ..errors import MercuryError

_LONGEST = 300


def check_schema(expected: ResponseFormat) -> None:
    """Refuse a schema that is not valid."""
    if expected.json_schema is not UNSET:
        _make_validator(msgspec.json.encode(expected.json_schema.schema))


def check_content(expected: ResponseFormat, completion: Completion) -> None:
    """Raise if the answer does not have the requested form; the error contains the answer."""
    if expected.type == "text" or completion.tool_calls is not None:
        return
    content = completion.content
    try:
        value = msgspec.json.decode(content)
    except UNDECODABLE as problem:
        raise _mismatch(f"it is not JSON ({problem})", content) from problem
    if expected.json_schema is UNSET:
        if not isinstance(value, dict):
            raise _mismatch("it is not a JSON object", content)
        return
    mismatch = next(
        _make_validator(msgspec.json.encode(expected.json_schema.schema)).iter_errors(value), None
    )
    if mismatch is not None:
        path = "/".join(str(step) for step in mismatch.instance_path)
        raise _mismatch(f"at /{path}: {mismatch.message[:_LONGEST]}", content)


_CACHED_BYTES = 4 * 1024
"""A larger schema is compiled for each use: one byte of it can become 100 in a compiled one that is kept."""


def _make_validator(schema: bytes) -> Any:
    return _make_cached(schema) if len(schema) <= _CACHED_BYTES else _compile(schema)


@lru_cache(64)
def _make_cached(schema: bytes) -> Any:
    return _compile(schema)


def _compile(schema: bytes) -> Any:
    import jsonschema_rs

    def refuse_reference(uri: str) -> NoReturn:
        raise ValueError(f"{uri} is another document")

    try:
        # `RegexOptions` is the linear-time engine; the default one backtracks.
        return jsonschema_rs.validator_for(
            schema.decode(), retriever=refuse_reference, pattern_options=jsonschema_rs.RegexOptions()
        )
    except ValueError as problem:
        message = f"response_format.json_schema.schema is not a valid JSON Schema: {str(problem)[:_LONGEST]}"
        raise MercuryError("INVALID_SCHEMA", message) from problem


def _mismatch(why: str, content: str) -> MercuryError:
    message = f"The answer does not have the form that was asked for: {why.rstrip('.')}."
    return MercuryError("FORMAT_MISMATCH", message, content=content)
