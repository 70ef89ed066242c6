"""The chat tools: `mercury_chat_completion` and `mercury_chat_stream`."""

from __future__ import annotations

from msgspec import UNSET

from bridgehead.mcp import Answer, Bridge, Context, Encoded, shows_apps

from ..api.stream import StreamedAnswer
from ..api.wire import CHAT
from ..arguments import Chat, ChatMessage, completion_tool, shorten_stream
from ..calling.call import Call, identify_account
from ..calling.service import Service
from ..completion import Completion
from ..settings import MercurySettings
from . import diffusion
from .files import quote_files, read_files
from .progress import Progress

COMPLETION = "mercury_chat_completion"
STREAM = "mercury_chat_stream"


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the chat tools."""
    completion_tool(
        bridge,
        "Ask the Mercury diffusion LLM, which answers very fast. Returns the whole answer, with model, "
        f"tokens, finish reason and cost in `metadata`. To watch a long answer grow use {STREAM}; for many "
        "prompts use mercury_batch.",
        name=COMPLETION,
        title="Mercury chat",
        settings=settings,
    )(complete)
    completion_tool(
        bridge,
        "Stream an answer of the Mercury LLM: progress notifications carry it as it grows, each with the "
        "new text (with diffusing, the whole text so far, which replaces the last). Takes all arguments "
        f"of {COMPLETION}. Returns the whole answer, with time to first token and tokens a second in "
        "`metadata`.",
        name=STREAM,
        title="Mercury chat, streamed",
        settings=settings,
        input_schema=shorten_stream,
        app=diffusion.URI,
    )(stream)


async def complete(args: Chat, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Return the complete answer."""
    await add_files(args, ctx)
    service = ctx.state
    call = service.make_call(COMPLETION, CHAT, args, ctx)
    now = service.clock.monotonic()
    cached = service.completer.lookup(call, ctx, now)
    if cached is not None:
        return cached.to_result(now, ctx.revision)
    return (await ask_model(call, ctx)).to_result(ctx.revision)


async def add_files(args: Chat, ctx: Context[Service]) -> None:
    """Append the named files to the last message if it is the user's, else as a new message."""
    if not args.files:
        return

    names, args.files = args.files, UNSET
    quoted = quote_files(names, await read_files(names, ctx))
    last = args.messages[-1]
    # Never into a tool's or an assistant's message: those are not the user's words.
    if last.role == "user" and last.content:
        last.content = f"{last.content}\n\n{quoted}"
    else:
        args.messages.append(ChatMessage("user", quoted))


async def complete_call(call: Call, ctx: Context[Service]) -> Completion:
    """Return a complete answer, from the cache or from the model."""
    service = ctx.state
    now = service.clock.monotonic()
    cached = service.completer.lookup(call, ctx, now)
    return await ask_model(call, ctx) if cached is None else cached.at(now)


async def ask_model(call: Call, ctx: Context[Service]) -> Completion:
    """Ask the model for a complete answer, with heartbeats while waiting."""
    service = ctx.state
    if not ctx.wants_progress:
        return await service.completer.complete(call, ctx)

    async with Progress(ctx):
        return await service.completer.complete(call, ctx)


async def stream(args: Chat, ctx: Context[Service]) -> Encoded | Answer[Completion]:
    """Stream the answer as progress; a cached one in one piece."""
    service = ctx.state
    # Before files are appended: the diffusion page finds its run by the message that it sent.
    about = args.messages[-1].content or ""
    await add_files(args, ctx)
    call = service.make_call(STREAM, CHAT, args, ctx, stream=True)
    now = service.clock.monotonic()
    cached = service.completer.lookup(call, ctx, now)
    if cached is not None:
        completion = cached.at(now)
        await ctx.progress(1, message=completion.content)
    else:
        async with Progress(ctx) as progress:
            if call.is_diffusing and shows_apps(ctx.client):
                # The diffusion page polls the states of this run, and can stop it.
                run = service.runs.begin(identify_account(ctx), about)

                async def report(text: StreamedAnswer) -> None:
                    run.add_state(text.take_new_text())
                    await progress.report(text)

                completion = await run.watch(service.completer.complete(call, ctx, report))
            else:
                completion = await service.completer.complete(call, ctx, progress.report)
            await progress.send_rest()
    return completion.to_result(ctx.revision)
