"""The chat tools: `mercury_chat_completion` and `mercury_chat_stream`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from bridgehead.mcp import Answer, Bridge, Context, Encoded

from ..api.wire import CHAT
from ..calling.call import Call, client_of
from ..calling.service import Service
from ..completion import Completed, answer
from .arguments import Chat

COMPLETION = "mercury_chat_completion"
STREAM = "mercury_chat_stream"


def declare(bridge: Bridge[Service]) -> None:
    """Declare the chat tools."""
    bridge.tool(
        "Ask the Mercury diffusion LLM, which answers very fast, to continue a conversation. Gives the "
        "whole answer at once, with tokens used, finish reason and cost in `metadata`. For long answers "
        f"that are to be seen as they grow use {STREAM}; for many prompts mercury_batch.",
        name=COMPLETION,
        title="Mercury chat",
        read_only=True,
        open_world=True,
        recall=recall,
    )(complete)
    bridge.tool(
        f"Like {COMPLETION}, but the answer is reported as it grows: each progress notification's message "
        "has the new text (with diffusing, the whole text so far, which replaces the last). The result has "
        "the whole answer, with time to first token and tokens a second in `metadata`.",
        name=STREAM,
        title="Mercury chat, streamed",
        read_only=True,
        open_world=True,
    )(stream)


def complete(
    args: Chat, ctx: Context[Service]
) -> Encoded | Answer[Completed] | Coroutine[Any, Any, Answer[Completed]]:
    """Answer a conversation as a whole: at once where the answer is kept."""
    service = ctx.state
    call = service.call_of(COMPLETION, CHAT, args, ctx)
    now = service.clock.monotonic()
    kept = service.kept(call, now)
    if kept is None:
        return _completed(call, ctx)
    service.recall.note(call, bytes(ctx.arguments))
    return kept.answer_at(now, ctx.revision)


def recall(ctx: Context[Service]) -> Encoded | None:
    """Answer a conversation that came before in the very same words, where the answer is kept."""
    if not ctx.revision.structured_output:
        return None
    service = ctx.state
    now = service.clock.monotonic()
    kept = service.recalled(bytes(ctx.arguments), client_of(ctx), now)
    return None if kept is None else kept.encoded_at(now)


async def _completed(call: Call, ctx: Context[Service]) -> Answer[Completed]:
    return answer(await ctx.state.complete(call, ctx), ctx.revision)


async def stream(args: Chat, ctx: Context[Service]) -> Answer[Completed]:
    """Answer a conversation piece by piece; where the answer is kept, in one piece."""
    service = ctx.state
    call = service.call_of(STREAM, CHAT, args, ctx)
    call.request_seconds = call.seconds  # a stream that goes on is not too slow
    completed = service.kept_completed(call)
    if completed is None:
        completed = await service.stream(call, ctx)
    else:
        await ctx.progress(1, message=completed.content)
    return answer(completed, ctx.revision)
