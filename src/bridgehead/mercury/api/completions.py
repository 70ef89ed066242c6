"""Completions: convert a response of the API, complete or streamed, to a `Completion` or an error. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import json

from bridgehead.mcp import UNDECODABLE
from bridgehead.runtime import logs

from ..completion import CalledFunction, Completion, Metadata, ToolCall, explain_cut
from ..errors import CODES, MercuryError
from . import wire
from .refusals import NOT_FOUND, broken_off, read_reason, refused
from .stream import ONLY_FIRST, StreamedAnswer, begins_stream
from .tolerance import mend, quote_bytes, read_tolerantly, unzip

_AS_STREAM = "The API sent the answer as a stream, not in one piece."
_NO_ENDPOINT = "Unexpected endpoint or method"
"""How LM Studio says that it does not serve a path, with the status 200."""
Read = tuple[Completion, tuple[Any, ...]]
"""A completion, and what the API reported as its usage."""


def read_response(body: bytes, request: wire.ApiRequest, seconds: float, api: str = "Mercury API") -> Read:
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
                completion, usage = read_stream(answer, request, 0.0, seconds)
                if not request.is_streamed:  # otherwise it was compressed, and so read as a whole
                    completion = completion.add_warning(_AS_STREAM)
                return completion, usage
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
    choice = next((choice for choice in response.choices if not choice.index), response.choices[0])
    message = choice.message or choice.delta or wire.Message(choice.text)
    text = wire.read_text(message.content)
    warnings += message.note_media()
    if len(response.choices) > 1:
        warnings.append(ONLY_FIRST)
    if not text and isinstance(message.audio, dict):
        text = wire.read_text(message.audio.get("transcript"))
    if may_have_halves:  # only then: the search takes a fifth of the instructions of a call
        text = mend(text)
    response.error = response.error or choice.error
    if response.error:
        raise broken_off(read_reason(response), text or None, api)
    thoughts = message.reasoning_content or message.reasoning or wire.read_thinking(message.content)
    has_media = bool(message.images or message.audio)
    has_calls = any(call.function for call in message.calls)
    is_empty = not (text or message.refusal or thoughts or has_media or has_calls)
    # Empty text is accepted only with a finish reason other than a tool call, and if no part was dropped.
    is_lost = (choice.finish_reason or "tool_calls") in ("tool_calls", "function_call")
    if is_empty and (is_lost or any("choices" in warning for warning in warnings)):
        raise _unusable("no part of it can be read", quote_bytes(body), api)
    metadata = Metadata(
        model=response.model or request.model,
        finish_reason=choice.finish_reason or "",
        duration_ms=round(seconds * 1000, 3),
        warnings=read_warnings(response) + warnings,
    )
    completion = _complete(
        text,
        metadata,
        message.calls,
        reasoning=thoughts,
        summary=response.reasoning_summary,
        refusal=message.refusal,
    )
    return completion, () if response.usage is None else (response.usage,)


def read_stream(answer: StreamedAnswer, request: wire.ApiRequest, started: float, now: float) -> Read:
    """Read a streamed answer that has ended."""
    first = answer.first_token_at
    metadata = Metadata(
        model=answer.model or request.model,
        finish_reason=answer.finish_reason or "",
        duration_ms=round((now - started) * 1000, 3),
        time_to_first_token_ms=None if first is None else round((first - started) * 1000, 3),
        warnings=answer.warnings,
    )
    completion = _complete(
        answer.text,
        metadata,
        answer.tool_calls,
        reasoning=answer.reasoning,
        summary=answer.reasoning_summary,
        refusal=answer.refusal,
    )
    return completion, tuple(answer.usage)


def _complete(
    text: str,
    metadata: Metadata,
    calls: list[wire.ToolCall],
    *,
    reasoning: str | None,
    summary: wire.ReasoningSummary | None,
    refusal: str | None,
) -> Completion:
    """Add the parts that complete and streamed answers share: warnings, tool calls, reasoning."""
    warnings = metadata.warnings or []
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


def _unusable(why: str, content: str | None, api: str) -> MercuryError:
    message = f"The answer of the {api} cannot be used: {why}."
    next_step = f"`content` has what came. {CODES['BAD_RESPONSE'].next_step}" if content else None
    return MercuryError("BAD_RESPONSE", message, next_step=next_step, content=content)
