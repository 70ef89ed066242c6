"""Completions: convert a response of the API, complete or streamed, to a `Completion` or an error. Pure."""

from __future__ import annotations

from msgspec import UNSET

from bridgehead.mcp import UNDECODABLE
from bridgehead.runtime import logs

from ..completion import COMPLETE, CalledFunction, Completion, Metadata, Tokens, ToolCall, explain_cut
from ..errors import MercuryError
from . import wire
from .refusals import broken_off
from .stream import StreamedAnswer

_TOKENS_LIMIT = 10**12
_USD_LIMIT = 1e6
_IMPOSSIBLE = Tokens(0, 0, 0)
_NOT_COUNTED = "The API's token counts cannot be true, so the usage and cost of this answer are not known."


def read_response(body: bytes, request: wire.Request, seconds: float) -> Completion:
    """Read a complete response; `seconds` is how long it took."""
    try:
        response = wire.read_completion(body)
    except UNDECODABLE as problem:
        raise _unusable("it is not what the API's description says") from problem
    # Some compatible servers report an error inside a 200.
    if response.error is not None:
        raise broken_off(response.error, "")
    # A decision has answers instead of choices. They become the text, so that the rest works as for a chat.
    if request.path == wire.DECISIONS and response.answers is not None:
        response.choices = [wire.Choice(text=wire.write(response.answers).decode(), finish_reason="stop")]
    if not response.choices:
        raise _unusable("there is no answer in it")
    choice = response.choices[0]
    message = choice.message or wire.Message(choice.text)
    if choice.finish_reason is None:
        raise _unusable("it does not say why it ends, so it may not be whole", message.text)
    warning = response.warning
    metadata = Metadata(
        response.model or request.model,
        read_usage(response.usage),
        choice.finish_reason,
        duration_ms=round(seconds * 1000, 3),
        warnings=[warning] if isinstance(warning, str) else warning,
    )
    return _complete(message.text, metadata, response.usage, message.tool_calls)


def read_stream(answer: StreamedAnswer, request: wire.Request, started: float, now: float) -> Completion:
    """Read a streamed answer that has ended."""
    used = read_usage(answer.usage)
    first = answer.first_token_at  # tokens per second are counted from here, without the wait before
    generating = now - (started if first is None else first)
    metadata = Metadata(
        answer.model or request.model,
        used,
        answer.finish_reason or "",
        duration_ms=round((now - started) * 1000, 3),
        time_to_first_token_ms=None if first is None else round((first - started) * 1000, 3),
        tokens_per_second=round(used.completion_tokens / generating, 1) if generating > 0 else None,
        warnings=answer.warnings,
    )
    return _complete(answer.text, metadata, answer.usage, answer.tool_calls)


def _complete(
    text: str, metadata: Metadata, reported: wire.ApiUsage | None, calls: list[wire.ToolCall] | None
) -> Completion:
    """Add the parts that complete and streamed answers share: cost, warnings, tool calls."""
    if reported is not None and reported.cost is not None:
        try:
            usd = float(reported.cost)
        except (TypeError, ValueError):
            usd = -1.0
        if 0 <= usd < _USD_LIMIT:  # else it is no plausible amount
            metadata.cost_usd = usd
    metadata.warnings = metadata.warnings or None
    if metadata.usage is _IMPOSSIBLE:
        metadata.warnings = [*(metadata.warnings or ()), _NOT_COUNTED]
    tool_calls: list[ToolCall] | None = None
    if calls:
        tool_calls = [
            # Streamed arguments are joined only now, so a secret that came in pieces is visible only now.
            ToolCall(
                logs.scrubbed(call.id),
                CalledFunction(logs.scrubbed(call.function.name), logs.scrubbed(call.function.arguments)),
            )
            for call in calls
            if call.function is not None
        ]
    is_whole = metadata.finish_reason in COMPLETE
    return Completion(text, metadata, tool_calls, UNSET if is_whole else explain_cut(metadata.finish_reason))


def read_usage(used: wire.ApiUsage | None) -> Tokens:
    """Read either form of the API's usage: details (newer), or flat (older). The newer one wins.

    Impossible numbers count as no usage: they would end up in budgets and limits.
    """
    if used is None:
        return Tokens(0, 0, 0)
    reasoning, cached = used.reasoning_tokens, used.cached_input_tokens
    if used.completion_tokens_details is not None:
        newer = used.completion_tokens_details.reasoning_tokens
        reasoning = reasoning if newer is None else newer
    if used.prompt_tokens_details is not None:
        newer = used.prompt_tokens_details.cached_tokens
        cached = cached if newer is None else newer
    prompt, completion = used.prompt_tokens or used.input_tokens, used.completion_tokens or used.output_tokens
    total = used.total_tokens or prompt + completion
    counts = (prompt, completion, total, reasoning or 0, cached or 0)
    if min(counts) < 0 or max(counts) > _TOKENS_LIMIT:
        return _IMPOSSIBLE
    return Tokens(prompt, completion, total, reasoning, cached)


def _unusable(why: str, content: str | None = None) -> MercuryError:
    return MercuryError("BAD_RESPONSE", f"The API's answer cannot be used: {why}.", content=content)
