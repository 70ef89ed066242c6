"""Answers: what a tool gives back for a completion: text, tool calls, and the metadata of the contract."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, json

from bridgehead.mcp import Answer
from bridgehead.mcp.revisions import Revision

from .api import wire

COMPLETE = frozenset({"stop", "tool_calls", "function_call"})
"""Finish reasons of an answer that is whole; others say that something cut it short."""


class Usage(Struct, omit_defaults=True, frozen=True):
    """Tokens of one call."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None


class Metadata(Struct, omit_defaults=True, frozen=True):
    """What is to be known of an answer beside its text."""

    model: str
    usage: Usage
    finish_reason: str
    cost_usd: float | None = None
    duration_ms: float | None = None
    time_to_first_token_ms: float | None = None
    tokens_per_second: float | None = None
    warnings: list[str] | None = None
    from_cache: bool = False
    cache_age_seconds: float | None = None


class CalledFunction(Struct, frozen=True):
    """The function to be called, and its arguments as JSON text."""

    name: str
    arguments: str


class ToolCallAnswer(Struct, frozen=True):
    """A tool that the model wants to be called."""

    id: str
    function: CalledFunction
    type: str = "function"


class Completed(Struct, omit_defaults=True, frozen=True):
    """A finished completion, as structured content."""

    content: Annotated[str, Meta(description="The completion")]
    metadata: Metadata
    tool_calls: list[ToolCallAnswer] | None = None


def usage_of(used: wire.ApiUsage | None) -> Usage:
    """Read either form of the API's usage."""
    if used is None:
        return Usage(0, 0, 0)
    reasoning, cached = used.reasoning_tokens, used.cached_input_tokens
    if used.completion_tokens_details is not None:
        reasoning = wire.known(used.completion_tokens_details.reasoning_tokens, reasoning)
    if used.prompt_tokens_details is not None:
        cached = wire.known(used.prompt_tokens_details.cached_tokens, cached)
    total = used.total_tokens or used.prompt_tokens + used.completion_tokens
    return Usage(used.prompt_tokens, used.completion_tokens, total, reasoning, cached)


def tool_calls_of(calls: list[wire.ToolCall] | None) -> list[ToolCallAnswer] | None:
    """Give the tool calls of a message; None where there are none."""
    if not calls:
        return None
    return [
        ToolCallAnswer(call.id, CalledFunction(call.function.name, call.function.arguments))
        for call in calls
        if call.function is not None
    ]


def text_of(completed: Completed) -> str:
    """Give the text of an answer; where it only calls tools, these."""
    if not completed.content and completed.tool_calls:
        return json.encode(completed.tool_calls).decode()
    return completed.content


def answer(completed: Completed, revision: Revision) -> Answer[Completed]:
    """Give a completion as a tool's answer.

    The contract has `metadata` beside `content`. Official clients drop members of a result that the protocol
    does not define, so it is part of the structured content; revisions without that find it in `_meta`.
    """
    meta = None if revision.structured_output else {"metadata": completed.metadata}
    return Answer(text_of(completed), completed, meta)
