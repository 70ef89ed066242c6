"""The tool `mercury_batch`: many prompts in one call, each with a result or an error of its own."""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from bridgehead.mcp import Bridge, Context
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.errors import BridgeError

from ..api.wire import CHAT, write
from ..calling.service import Service
from ..completion import Completion
from ..errors import ErrorBody, MercuryError, describe
from ..settings import MercurySettings
from .arguments import BATCH_GRACE_SECONDS, Chat, ChatMessage, ChatOptions, completion_tool

BATCH = "mercury_batch"
MOST_PROMPTS = 500
MOST_AT_ONCE = 32


class Batch(ChatOptions, kw_only=True):
    """Prompts, and how all of them are to be answered."""

    prompts: Annotated[
        list[str], Meta(min_length=1, max_length=MOST_PROMPTS, description="One user message each")
    ]
    system: Annotated[str, Meta(description="System message for all of them")] | UnsetType = UNSET
    concurrency: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE, description="How many at once")] = 4


class BatchItem(Struct, omit_defaults=True):
    """What came of one prompt."""

    index: int
    content: str | UnsetType = UNSET
    incomplete: Annotated[str, Meta(description="Why the content is not whole")] | UnsetType = UNSET
    from_cache: bool = False
    error: Annotated[str, Meta(description="A code; `errors` has the details")] | UnsetType = UNSET


class BatchError(Struct, omit_defaults=True):
    """A failure, and the prompts that it happened to."""

    indexes: list[int]
    error: ErrorBody


class BatchResult(Struct, omit_defaults=True):
    """What came of all prompts, in their order."""

    results: list[BatchItem]
    succeeded: int
    failed: int
    total_tokens: int
    cost_usd: float
    models: list[str]
    warnings: list[str] | UnsetType = UNSET
    errors: list[BatchError] | UnsetType = UNSET


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the tool."""
    completion_tool(
        bridge,
        "Answer many independent prompts in one call, several at once. Returns `results` in the order of the "
        "prompts; one that fails stops no other, and `errors` says why. The call fails only if all do.",
        name=BATCH,
        title="Mercury batch",
        model=settings.model,
        grace_seconds=BATCH_GRACE_SECONDS,
    )(run)


async def run(args: Batch, ctx: Context[Service]) -> BatchResult:
    """Answer the prompts."""
    await _add_files(args, ctx)
    waiting = iter(range(len(args.prompts)))
    items: dict[int, Completion | BridgeError] = {}

    async def work() -> None:
        for index in waiting:
            items[index] = await _complete_prompt(index, args, ctx)
            await ctx.progress(len(items), total=len(args.prompts))

    beating = asyncio.create_task(_beat(ctx, items, len(args.prompts)))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(args.concurrency, len(args.prompts))):
                group.create_task(work())
    finally:
        beating.cancel()
    return _summarize([items[index] for index in range(len(args.prompts))])


async def _beat(ctx: Context[Service], items: Sized, total: int) -> None:
    """Show signs of life while prompts are slow: clients give up after a minute of silence.

    Progress has to grow, so each sign is a little closer to the next whole prompt, and never there.
    """
    done = beats = 0
    while True:
        await asyncio.sleep(ctx.state.settings.heartbeat / 1000)
        if len(items) == total:
            return
        if len(items) != done:
            done, beats = len(items), 0
        beats += 1
        await ctx.progress(done + beats / (beats + 1), total=total)


async def _add_files(args: Batch, ctx: Context[Service]) -> None:
    """Put the files that a call names into every prompt."""
    if not args.files:
        return
    from .files import quote_files, read_files

    names, args.files = args.files, UNSET
    quoted = quote_files(names, await read_files(names, ctx))
    args.prompts = [f"{prompt}\n\n{quoted}" for prompt in args.prompts]


async def _complete_prompt(index: int, args: Batch, ctx: Context[Service]) -> Completion | BridgeError:
    service = ctx.state
    try:
        call = service.make_call(BATCH, CHAT, _make_chat(args, args.prompts[index]), ctx)
        now = service.clock.monotonic()
        cached = service.completer.lookup(call, ctx, now)
        return await service.completer.complete(call, ctx) if cached is None else cached.at(now)
    except BridgeError as error:
        return error


def _make_chat(args: Batch, prompt: str) -> Chat:
    messages = [ChatMessage("user", prompt)]
    if args.system is not UNSET:
        messages.insert(0, ChatMessage("system", args.system))
    options = {name: value for name, value in asdict(args).items() if name in ChatOptions.__struct_fields__}
    return Chat(messages=messages, **options)


def _summarize(ends: list[Completion | BridgeError]) -> BatchResult:
    """Tell what all prompts have in common once; raises where every one of them failed."""
    done = [end for end in ends if isinstance(end, Completion)]
    errors = _group_errors(ends)
    if not done:
        raise _all_failed(len(ends), errors)
    warnings = list(dict.fromkeys(warning for one in done for warning in one.metadata.warnings or ()))
    return BatchResult(
        [_describe(index, end) for index, end in enumerate(ends)],
        len(done),
        len(ends) - len(done),
        sum(one.metadata.usage.total_tokens for one in done),
        round(sum(one.metadata.cost_usd or 0.0 for one in done), 12),
        list(dict.fromkeys(one.metadata.model for one in done)),
        warnings or UNSET,
        errors or UNSET,
    )


def _describe(index: int, end: Completion | BridgeError) -> BatchItem:
    if isinstance(end, BridgeError):
        return BatchItem(index, error=end.code.upper())
    return BatchItem(index, end.text, end.incomplete, end.metadata.from_cache)


def _group_errors(ends: list[Completion | BridgeError]) -> list[BatchError]:
    """Put prompts that failed in the same way together; what came of an answer makes a failure its own."""
    groups: dict[bytes, BatchError] = {}
    for index, end in enumerate(ends):
        if isinstance(end, BridgeError):
            body = describe(end)
            group = groups.setdefault(write([body.code, body.message, body.content]), BatchError([], body))
            group.indexes.append(index)
    return list(groups.values())


def _all_failed(count: int, errors: list[BatchError]) -> MercuryError:
    first = errors[0].error
    said = " ".join(f"{len(one.indexes)} × {one.error.code}: {one.error.message}" for one in errors)
    message = first.message if len(errors) == 1 else said
    return MercuryError(
        first.code, f"All {count} prompts failed. {message}", next_step="", retry_after=first.retry_after
    )
