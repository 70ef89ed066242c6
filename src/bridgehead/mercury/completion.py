"""Completion: a finished answer of a model with its metadata, and the result of a tool that returns it.

Owns the contract's shapes. `api` knows the API's form of an answer, `calling` the policy of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field, json, to_builtins
from msgspec.structs import replace

from bridgehead.mcp import Encoded, Revision, Text

COMPLETE = frozenset(
    {"stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence", "end_turn", "complete"}
)
"""Finish reasons of a complete answer, compared without case; any other means that it was cut short. Includes
what Together, TGI, Anthropic and Cohere call `stop`."""


class Tokens(Struct, omit_defaults=True, frozen=True):
    """Tokens of one call."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None


class Metadata(Struct, omit_defaults=True, kw_only=True):
    """Model, usage, cost and times of an answer."""

    model: str
    usage: Tokens | UnsetType = UNSET
    """Left out if the API did not report it, or not so that it can be true."""
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
    reasoning: str | None = None
    reasoning_summary: str | None = None
    refusal: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the answer is complete, not cut short."""
        return self.incomplete is UNSET

    @property
    def text(self) -> str:
        """The content; if there is none, the tool calls (as JSON), the refusal or the reasoning."""
        if not self.content and self.tool_calls:
            return json.encode(self.tool_calls).decode()
        return self.content or self.refusal or self.reasoning or ""

    def add_warning(self, warning: str) -> Completion:
        """Return a copy with one more warning; the answer itself may be shared with other calls."""
        warnings = [*(self.metadata.warnings or ()), warning]
        return replace(self, metadata=replace(self.metadata, warnings=warnings))

    def to_result(self, revision: Revision) -> Encoded:
        """Return the encoded result of a tool."""
        notes = [] if self.incomplete is UNSET else [self.incomplete]
        if self.refusal:
            notes.append(f"The model refused to answer: {self.refusal}")
        elif self.reasoning and self.text is self.reasoning:
            notes.append("The answer is empty; the text is the model's reasoning.")
        blocks = [Text(self.text)]
        if self.content and self.tool_calls:
            blocks.append(Text(f"Tool calls: {json.encode(self.tool_calls).decode()}"))
        return encode_result(blocks, self.metadata, self, revision, notes)


class _Result(Struct, omit_defaults=True, rename="camel", frozen=True):
    """The result of a completion tool, on the wire."""

    content: list[Text]
    metadata: Metadata
    structured_content: Any = None
    meta: dict[str, Metadata] | None = field(default=None, name="_meta")


_encode = json.Encoder().encode


def encode_result(
    blocks: list[Text],
    metadata: Metadata,
    structured: Struct,
    revision: Revision,
    notes: Sequence[str] = (),
) -> Encoded:
    """Encode a result with `metadata` in every place where clients look for it.

    Notes and the metadata's warnings follow as a last block, and as `notes` in the structured content:
    clients show a model one or the other.
    """
    # The contract has `metadata` beside `content`. The official Python client 2.3 drops members of a result
    # that the protocol does not define, so it is also part of the structured content; in revisions without
    # that it is in `_meta`.
    notes = [*notes, *(metadata.warnings or ())]
    if notes:
        blocks = [*blocks, Text("\n".join(f"Note: {note}" for note in notes))]
    if not revision.structured_output:
        return Encoded(_encode(_Result(blocks, metadata, None, {"metadata": metadata})))
    noted = {**to_builtins(structured), "notes": notes} if notes else structured
    return Encoded(_encode(_Result(blocks, metadata, noted)))


def explain_cut(finish_reason: str) -> str | UnsetType:
    """Return the notice for an answer that was cut short; unset if its finish reason is of `COMPLETE`."""
    if finish_reason.lower() in COMPLETE:
        return UNSET
    if not finish_reason:
        return "The answer may not be whole: the API does not say why it ends."
    if finish_reason == "length":
        why, advice = "it reached max_tokens", "Call again with a larger max_tokens, or ask for the rest"
    elif finish_reason == "content_filter":
        why, advice = "the API's content filter stopped it", "Word the request differently"
    else:
        why, advice = f"the API stopped it ({finish_reason})", "Call again"
    return f"The answer is not whole: {why}. {advice}."
