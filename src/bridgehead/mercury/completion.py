"""Completion: a finished answer of a model with its metadata, and what a tool returns for it.

Knows the contract's shapes. How the API writes an answer is in `api`; what happens to a call is in `calling`.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, json

from bridgehead.mcp import Answer, Revision

COMPLETE = frozenset({"stop", "tool_calls", "function_call"})
"""Finish reasons of an answer that is whole; others say that something cut it short."""


class Tokens(Struct, omit_defaults=True, frozen=True):
    """Tokens of one call."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None


class Metadata(Struct, omit_defaults=True):
    """What there is to know of an answer beside its text."""

    model: str
    usage: Tokens
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


class ToolCall(Struct, frozen=True):
    """A tool that the model wants to be called."""

    id: str
    function: CalledFunction
    type: str = "function"


class Completion(Struct, omit_defaults=True, frozen=True):
    """A finished completion, as structured content."""

    content: Annotated[str, Meta(description="The completion")]
    metadata: Metadata
    tool_calls: list[ToolCall] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing cut it short."""
        return self.metadata.finish_reason in COMPLETE

    @property
    def text(self) -> str:
        """Its text; where it only calls tools, these."""
        if not self.content and self.tool_calls:
            return json.encode(self.tool_calls).decode()
        return self.content

    def to_answer(self, revision: Revision) -> Answer[Completion]:
        """Return it as a tool's answer.

        The contract has `metadata` beside `content`. Official clients drop members of a result that the
        protocol does not define, so it is part of the structured content; revisions without that find it in
        `_meta`.
        """
        meta = None if revision.structured_output else {"metadata": self.metadata}
        return Answer(self.text, self, meta)
