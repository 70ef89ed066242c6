"""Rendering: an answer as the API writes it, whole or as a stream of server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from . import diffusion
from .answers import Answer

DONE = b"data: [DONE]\n\n"


class Whole(Struct, frozen=True):
    """An answer in one piece."""

    body: bytes
    status: int = 200


class Streamed(Struct, frozen=True):
    """An answer in pieces, each one server-sent event."""

    opening: bytes
    deltas: Iterator[bytes]
    finish: bytes
    usage: bytes
    """Empty if the request does not want it."""


class Envelope(Struct, frozen=True):
    """Fields of every piece of one answer."""

    id: str
    created: int


# The invented prose repeats few words, and a benchmark streams many of them.
_encode_token = lru_cache(maxsize=4096)(msgspec.json.encode)


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def usage(answer: Answer) -> dict[str, Any]:
    """Return the usage of an answer in the form (older or newer) of its model."""
    figures: dict[str, Any] = {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }
    if answer.model.is_older:
        figures["reasoning_tokens"] = answer.reasoning_tokens
        figures["cached_input_tokens"] = answer.cached_tokens
    else:
        figures["completion_tokens_details"] = {"reasoning_tokens": answer.reasoning_tokens}
        figures["prompt_tokens_details"] = {"cached_tokens": answer.cached_tokens}
    return figures


def _common(answer: Answer, envelope: Envelope, kind: str) -> dict[str, Any]:
    return {"id": envelope.id, "object": kind, "created": envelope.created, "model": answer.model.id}


def _extras(answer: Answer) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if answer.warning:
        extras["warning"] = answer.warning
    if answer.summary:
        extras["reasoning_summary"] = {"content": answer.summary, "status": "complete"}
    return extras


def whole(answer: Answer, envelope: Envelope, kind: str) -> Whole:
    """Write an answer in one piece: of a chat, an edit or a completed text."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": answer.finish_reason}
    if kind == "text_completion":
        choice["text"] = answer.text
    elif answer.tool:
        call = _call(answer, envelope, answer.text)
        choice["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    else:
        choice["message"] = {"role": "assistant", "content": answer.text}
    figures = {"choices": [choice], "usage": usage(answer), **_extras(answer)}
    return Whole(msgspec.json.encode(_common(answer, envelope, kind) | figures))


def _call(answer: Answer, envelope: Envelope, arguments: str) -> dict[str, Any]:
    function = {"name": answer.tool, "arguments": arguments}
    return {"index": 0, "id": f"call_{envelope.id[-12:]}", "type": "function", "function": function}


def streamed_chat(answer: Answer, envelope: Envelope, *, diffusing: bool, with_usage: bool) -> Streamed:
    """Write the answer of a chat piece by piece; when diffusing, each piece replaces all before it."""
    common = _common(answer, envelope, "chat.completion.chunk")
    first: dict[str, Any] = {"role": "assistant", "content": ""}
    if answer.tool:
        first = {"role": "assistant", "content": None, "tool_calls": [_call(answer, envelope, "")]}
        key = '"tool_calls":[{"index":0,"function":{"arguments":'
        deltas = _deltas(common, '"delta":{' + key, "}}]}", iter(answer.tokens))
    else:
        pieces = diffusion.steps(answer.tokens, answer.seed) if diffusing else iter(answer.tokens)
        deltas = _deltas(common, '"delta":{"content":', "}", pieces)
    last = {"index": 0, "delta": {}, "finish_reason": answer.finish_reason}
    warning = {"warning": answer.warning} if answer.warning else {}
    summary = {key: value for key, value in _extras(answer).items() if key != "warning"}
    return Streamed(
        _event(common | {"choices": [{"index": 0, "delta": first, "finish_reason": None}]} | warning),
        deltas,
        _event(common | {"choices": [last]} | summary),
        _event(common | {"choices": [], "usage": usage(answer)}) if with_usage else b"",
    )


def streamed_text(answer: Answer, envelope: Envelope, *, with_usage: bool) -> Streamed:
    """Write a completed text piece by piece."""
    common = _common(answer, envelope, "text_completion")
    choice = {"index": 0, "text": "", "finish_reason": None}
    return Streamed(
        _event(common | {"choices": [choice]} | _extras(answer)),
        _deltas(common, '"text":', "", iter(answer.tokens)),
        _event(common | {"choices": [choice | {"finish_reason": answer.finish_reason}]}),
        _event(common | {"choices": [], "usage": usage(answer)}) if with_usage else b"",
    )


def _deltas(common: dict[str, Any], before: str, after: str, pieces: Iterator[str]) -> Iterator[bytes]:
    """Put each piece between the same bytes, much faster than encoding each event."""
    head = b"data: " + msgspec.json.encode(common)[:-1] + b',"choices":[{"index":0,' + before.encode()
    tail = after.encode() + b',"finish_reason":null}]}\n\n'
    return (head + _encode_token(piece) + tail for piece in pieces)
