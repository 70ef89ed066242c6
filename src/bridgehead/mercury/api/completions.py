"""Completions: convert a response of the API, complete or streamed, to a `Completion` or an error. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import json

from bridgehead.mcp import UNDECODABLE
from bridgehead.runtime import logs

from ..completion import CalledFunction, Completion, Metadata, Tokens, ToolCall, explain_cut
from ..errors import CODES, MercuryError
from . import wire
from .refusals import NOT_FOUND, broken_off, read_reason, refused
from .stream import StreamedAnswer, begins_stream
from .tolerance import mend, quote_bytes, read_tolerantly, unzip

_TOKENS_LIMIT = 10**12
_USD_LIMIT = 1e6
_IMPOSSIBLE = Tokens(0, 0, 0)
_NO_ENDPOINT = "Unexpected endpoint or method"
"""How LM Studio says that it does not serve a path, with the status 200."""
_NOT_COUNTED = "The API's token counts cannot be true, so the usage and cost of this answer are not known."


def read_response(
    body: bytes, request: wire.ApiRequest, seconds: float, api: str = "Mercury API"
) -> Completion:
    """Read a complete response; `seconds` is how long it took, `api` names who sent it."""
    warnings: list[str] = []
    may_have_halves = False
    try:
        response = wire.read_completion(body)
    except UNDECODABLE:
        may_have_halves = True
        try:
            response, warnings = read_tolerantly(body, wire.CompletionResponse)
        except UNDECODABLE as problem:
            body = unzip(body)
            if begins_stream(body):  # some servers stream unasked
                answer = StreamedAnswer(is_diffusing=request.is_diffusing, max_bytes=len(body), api=api)
                answer.feed(body, seconds)
                answer.end(seconds)
                answer.first_token_at = None  # not known: the body was read as a whole
                completion = read_stream(answer, request, 0.0, seconds)
                if request.is_streamed:  # it was compressed, so it was read as a whole
                    return completion
                return completion.add_warning("The API sent the answer as a stream, not in one piece.")
            raise _unusable("it is not JSON of any known form", quote_bytes(body), api) from problem
    # Decisions and embeddings have no choices. Their JSON becomes the text of one, and is handled as a chat.
    if request.path in (wire.DECISIONS, wire.EMBEDDINGS):
        data: Any = response.answers
        if request.path == wire.EMBEDDINGS and response.data:
            data = [item.embedding for item in sorted(response.data, key=lambda item: item.index)]
        text = None if data is None else wire.write(data).decode()
        response.choices = None if text is None else [wire.Choice(text=text, finish_reason="stop")]
    if not response.choices:
        # Some compatible servers report an error inside a 200.
        if response.error or response.message or response.detail:
            reason = read_reason(response)
            if reason.message and reason.message.startswith(_NO_ENDPOINT):
                raise refused(NOT_FOUND, body, None, path=request.sent_path or request.path, api=api)
            raise broken_off(reason, None, api)
        raise _unusable("there is no answer in it", quote_bytes(body), api)
    choice = response.choices[0]
    message = choice.message or choice.delta or wire.Message(choice.text)
    text = wire.read_text(message.content)
    if may_have_halves:  # only then: the search takes a fifth of the instructions of a call
        text = mend(text)
    response.error = response.error or choice.error
    if response.error:
        raise broken_off(read_reason(response), text or None, api)
    thoughts = message.reasoning_content or message.reasoning or wire.read_thinking(message.content)
    is_empty = not (text or message.refusal or thoughts or any(call.function for call in message.calls))
    # Empty text is accepted only with a finish reason other than a tool call, and if no part was dropped.
    is_lost = (choice.finish_reason or "tool_calls") in ("tool_calls", "function_call")
    if is_empty and (is_lost or any("choices" in warning for warning in warnings)):
        raise _unusable("no part of it can be read", quote_bytes(body), api)
    metadata = Metadata(
        response.model or request.model,
        read_usage(response.usage),
        choice.finish_reason or "",
        duration_ms=round(seconds * 1000, 3),
        warnings=read_warnings(response) + warnings,
    )
    return _complete(
        text,
        metadata,
        response.usage,
        message.calls,
        reasoning=thoughts,
        summary=response.reasoning_summary,
        refusal=message.refusal,
    )


def read_stream(answer: StreamedAnswer, request: wire.ApiRequest, started: float, now: float) -> Completion:
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
    return _complete(
        answer.text,
        metadata,
        answer.usage,
        answer.tool_calls,
        reasoning=answer.reasoning,
        summary=answer.reasoning_summary,
        refusal=answer.refusal,
    )


def _complete(
    text: str,
    metadata: Metadata,
    reported: wire.ApiUsage | None,
    calls: list[wire.ToolCall],
    *,
    reasoning: str | None,
    summary: wire.ReasoningSummary | None,
    refusal: str | None,
) -> Completion:
    """Add the parts that complete and streamed answers share: cost, warnings, tool calls, reasoning."""
    if reported is not None and reported.cost is not None:
        try:
            usd = float(reported.cost)
        except (TypeError, ValueError):
            usd = -1.0
        if 0 <= usd < _USD_LIMIT:  # otherwise implausible
            metadata.cost_usd = usd
    warnings = metadata.warnings or []
    if metadata.usage is _IMPOSSIBLE:
        warnings.append(_NOT_COUNTED)
    tool_calls: list[ToolCall] | None = None
    if calls:
        tool_calls = []
        for number, call in enumerate(calls, 1):
            function = call.function or wire.FunctionCall()
            if not call.id:
                # The result of a tool call refers to its id, so one is made up if the API gave none.
                warnings.append(f"The API gave tool call {number} no id; here it is call_{number}.")
            arguments = _clean(function.arguments_text)
            try:
                if arguments:
                    json.decode(arguments)
            except UNDECODABLE:  # perhaps a mix of two calls' pieces
                warnings.append(f"The arguments of tool call {number} are not valid JSON.")
            called = CalledFunction(_clean(function.name or ""), arguments)
            tool_calls.append(ToolCall(_clean(call.id or f"call_{number}"), called))
    if summary is not None and summary.status == "unavailable":
        warnings.append("The API has no summary of the reasoning for this answer.")
    metadata.warnings = warnings or None
    return Completion(
        text,
        metadata,
        tool_calls,
        explain_cut(metadata.finish_reason),
        reasoning=_clean(reasoning) if reasoning else None,
        reasoning_summary=_clean(summary.content) if summary is not None and summary.content else None,
        refusal=_clean(refusal) if refusal else None,
    )


def _clean(text: str) -> str:
    """Return a text that may have come in pieces, without secrets and half characters."""
    return logs.scrubbed(mend(text))


def read_warnings(response: wire.CompletionResponse) -> list[str]:
    """Return the API's own warnings."""
    return [response.warning] if isinstance(response.warning, str) else list(response.warning or ())


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
    prompt = used.prompt_tokens or used.input_tokens or 0
    completion = used.completion_tokens or used.output_tokens or 0
    total = used.total_tokens or prompt + completion
    counts = (prompt, completion, total, reasoning or 0, cached or 0)
    if min(counts) < 0 or max(counts) > _TOKENS_LIMIT:
        return _IMPOSSIBLE
    return Tokens(prompt, completion, total, reasoning, cached)


def _unusable(why: str, content: str | None, api: str) -> MercuryError:
    message = f"The answer of the {api} cannot be used: {why}."
    next_step = f"`content` has what came. {CODES['BAD_RESPONSE'].next_step}" if content else None
    return MercuryError("BAD_RESPONSE", message, next_step=next_step, content=content)
