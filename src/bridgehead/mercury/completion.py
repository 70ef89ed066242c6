"""Completion: a finished answer of a model with its metadata, and the result of a tool that returns it.

Owns the contract's shapes. `api` knows the API's form of an answer, `calling` the policy of a call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field, json, to_builtins
from msgspec.structs import replace

from bridgehead.mcp import Encoded, Revision, Text

COMPLETE = frozenset(
    {"stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence", "end_turn", "complete"}
    | {"tool_use", "tool_call"}
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


class Money(Struct, frozen=True):
    """What one call cost its caller."""

    cost_usd: float | None = None
    """What was certainly charged; None if that is not known."""
    uncertain_usd: float = 0.0
    """The most that may be billed for sends of it without an answer."""
    left_usd: dict[str, float] = {}
    """What is left of the caller's budgets, by period."""

    def describe(self) -> str:
        """Describe it in one line; empty if nothing is known."""
        parts = []
        if self.cost_usd is not None:
            parts.append(f"Cost: {format_usd(self.cost_usd)}.")
        if self.uncertain_usd:
            parts.append(f"Up to {format_usd(self.uncertain_usd)} may be billed for sends without an answer.")
        if self.left_usd:
            left = ", ".join(f"{format_usd(usd)} for the {period}" for period, usd in self.left_usd.items())
            parts.append(f"Left of the budget: {left}.")
        return " ".join(parts)


def format_usd(usd: float) -> str:
    """Format an amount: $12.50, $0.0042, $0.000031."""
    if usd == 0 or usd >= 1:
        return f"${usd:,.2f}"
    return f"${usd:.{max(2, 1 - math.floor(math.log10(usd)))}f}"


class Metadata(Struct, omit_defaults=True, kw_only=True):
    """Model, usage, cost and times of an answer."""

    model: str
    usage: Tokens | UnsetType = UNSET
    """Left out if the API did not report it, or not so that it can be true."""
    finish_reason: str
    provider: str | None = None
    cost_usd: float | None = None
    uncertain_usd: float | None = None
    budget_left_usd: dict[str, float] | None = None
    duration_ms: float | None = None
    time_to_first_token_ms: float | None = None
    tokens_per_second: float | None = None
    warnings: list[str] | None = None
    from_cache: bool = False
    cache_age_seconds: float | None = None

    @property
    def money(self) -> Money:
        """What the call cost."""
        return Money(self.cost_usd, self.uncertain_usd or 0.0, self.budget_left_usd or {})

    def unpaid(self, *, from_cache: bool = False) -> Metadata:
        """Return a copy for a caller who did not pay for it."""
        return replace(self, cost_usd=0.0, uncertain_usd=None, budget_left_usd=None, from_cache=from_cache)


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

    Notes, the metadata's warnings and the cost follow as a last block, and notes as `notes` in the structured
    content: clients show a model one or the other.
    """
    # The contract has `metadata` beside `content`. The official Python client 2.3 drops members of a result
    # that the protocol does not define, so it is also part of the structured content; in revisions without
    # that it is in `_meta`.
    notes = [*notes, *(metadata.warnings or ())]
    said = [f"Note: {note}" for note in notes]
    if not metadata.from_cache and (cost := metadata.money.describe()):
        said.append(cost)
    if said:
        blocks = [*blocks, Text("\n".join(said))]
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
    if finish_reason.lower() in ("length", "max_tokens", "model_length"):
        why, advice = "it reached max_tokens", "Call again with a larger max_tokens, or ask for the rest"
    elif finish_reason == "content_filter":
        why, advice = "the API's content filter stopped it", "Word the request differently"
    else:
        why, advice = f"the API stopped it ({finish_reason})", "Call again"
    return f"The answer is not whole: {why}. {advice}."
