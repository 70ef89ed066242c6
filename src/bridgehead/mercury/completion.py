"""Completion: a finished answer of a model with its metadata, and the result of a tool that returns it.

Owns the contract's shapes. `api` knows the API's form of an answer, `calling` the policy of a call.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field, json

from bridgehead.mcp import Encoded, Revision, Text

COMPLETE = frozenset({"stop", "tool_calls", "function_call"})
"""Finish reasons of a complete answer; any other means that it was cut short."""


class Tokens(Struct, omit_defaults=True, frozen=True):
    """Tokens of one call."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None


class Metadata(Struct, omit_defaults=True):
    """Model, usage, cost and times of an answer."""

    model: str
    usage: Tokens
    finish_reason: str
    provider: str | None = None
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
    """A tool call that the model asks for."""

    id: str
    function: CalledFunction
    type: str = "function"


class Completion(Struct, omit_defaults=True, frozen=True):
    """A finished completion, as structured content."""

    content: Annotated[str, Meta(description="The completion")]
    metadata: Metadata
    tool_calls: list[ToolCall] | None = None
    incomplete: Annotated[str, Meta(description="Why it is not whole")] | UnsetType = UNSET

    @property
    def is_whole(self) -> bool:
        """Whether nothing cut it short."""
        return self.metadata.finish_reason in COMPLETE

    @property
    def text(self) -> str:
        """The content, or the tool calls as JSON if there is nothing else."""
        if not self.content and self.tool_calls:
            return json.encode(self.tool_calls).decode()
        return self.content

    def to_result(self, revision: Revision) -> Encoded:
        """Return the encoded result of a tool, with `metadata` where each kind of client finds it."""
        # The contract has `metadata` beside `content`. The official Python client 2.3 drops members of a
        # result that the protocol does not define, so it is also part of the structured content; in revisions
        # without that it is in `_meta`.
        blocks = [Text(self.text)]
        if self.incomplete is not UNSET:
            blocks.append(Text(self.incomplete))
        return encode_result(blocks, self.metadata, self, revision)


class _Result(Struct, omit_defaults=True, rename="camel", frozen=True):
    """The result of a completion tool, on the wire."""

    content: list[Text]
    metadata: Metadata
    structured_content: Struct | None = None
    meta: dict[str, Metadata] | None = field(default=None, name="_meta")


_encode = json.Encoder().encode


def encode_result(blocks: list[Text], metadata: Metadata, structured: Struct, revision: Revision) -> Encoded:
    """Encode a result with `metadata` in every place where clients look for it (see `to_result`)."""
    if revision.structured_output:
        return Encoded(_encode(_Result(blocks, metadata, structured)))
    return Encoded(_encode(_Result(blocks, metadata, None, {"metadata": metadata})))


def explain_cut(finish_reason: str) -> str:
    """Return the notice for an answer whose finish reason is none of `COMPLETE`."""
    if finish_reason == "length":
        why, advice = "it reached max_tokens", "Call again with a larger max_tokens, or ask for the rest"
    elif finish_reason == "content_filter":
        why, advice = "the API's content filter stopped it", "Word the request differently"
    else:
        why, advice = f"the API stopped it ({finish_reason})", "Call again"
    return f"[Incomplete: the answer above was cut short because {why}. It is not whole. {advice}.]"
