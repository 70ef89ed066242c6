"""The tool `mercury_batch`: many prompts in one call, each with its own result or error."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sized
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from bridgehead.mcp import Answer, Bridge, Context
from bridgehead.runtime.errors import BridgeError

from ..api.wire import CHAT, write
from ..arguments import BATCH_GRACE_SECONDS, Chat, ChatMessage, ChatOptions, completion_tool
from ..calling.service import Service
from ..completion import Completion
from ..errors import ErrorBody, MercuryError, describe
from ..settings import MercurySettings
from . import progress
from .files import quote_files, read_files

BATCH = "mercury_batch"
MAX_PROMPTS = 500
MAX_CONCURRENCY = 32


class Batch(ChatOptions, kw_only=True):
    """Prompts, and the options for all of them."""

    prompts: Annotated[
        list[str],
        Meta(min_length=1, max_length=MAX_PROMPTS, description="At most 500 user messages"),
    ]
    system: Annotated[str, Meta(description="System message for all of them")] | UnsetType = UNSET
    concurrency: Annotated[int, Meta(ge=1, le=MAX_CONCURRENCY, description="At once; 1 to 32, default 4")] = 4


class BatchItem(Struct, omit_defaults=True):
    """Result of one prompt."""

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
    """Results of all prompts, in their order."""

    results: list[BatchItem]
    succeeded: int
    failed: int
    total_tokens: int
    models: list[str]
    cost_usd: Annotated[float, Meta(description="Of the prompts whose cost is known")] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    errors: list[BatchError] | UnsetType = UNSET


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the tool."""
    completion_tool(
        bridge,
        "Answer many independent prompts in one call, several at once; it waits where a rate limit needs it. "
        "Returns `results` in the order of the prompts; `errors` tells which of them failed, and why.",
        name=BATCH,
        title="Mercury batch",
        settings=settings,
        grace_seconds=BATCH_GRACE_SECONDS,
    )(run)


async def run(args: Batch, ctx: Context[Service]) -> Answer[BatchResult]:
    """Answer the prompts."""
    if args.files:
        names, args.files = args.files, UNSET
        quoted = quote_files(names, await read_files(names, ctx))
        args.prompts = [f"{prompt}\n\n{quoted}" for prompt in args.prompts]
    service = ctx.state
    system = [] if args.system is UNSET else [ChatMessage("system", args.system)]
    options = {name: value for name, value in asdict(args).items() if name in ChatOptions.__struct_fields__}
    total = len(args.prompts)
    pending = iter(range(total))  # shared by the workers: each takes the next prompt
    items: dict[int, Completion | BridgeError] = {}

    async def work() -> None:
        for index in pending:
            messages = [*system, ChatMessage("user", args.prompts[index])]
            try:
                call = service.make_call(BATCH, CHAT, Chat(messages=messages, **options), ctx)
                call.is_patient = True
                now = service.clock.monotonic()
                cached = service.completer.lookup(call, ctx, now)
                if cached is None:
                    async with service.batch_turns.take():
                        items[index] = await service.completer.complete(call, ctx)
                else:
                    items[index] = cached.at(now)
            except BridgeError as error:  # one failure does not stop the other prompts
                items[index] = error.with_traceback(None)  # the traceback's frames hold `items`
            await ctx.progress(len(items), total=total)

    # In addition to the workers' progress, which comes only when a prompt is done.
    heartbeats = asyncio.create_task(_send_heartbeats(ctx, items, total))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(args.concurrency, total)):
                group.create_task(work())
    finally:
        heartbeats.cancel()
    return _summarize([items[index] for index in range(total)])


async def _send_heartbeats(ctx: Context[Service], items: Sized, total: int) -> None:
    """Report progress while prompts are slow: many clients give up after a minute without any."""
    done = beats = 0
    while True:
        await asyncio.sleep(progress.HEARTBEAT_SECONDS)
        if len(items) == total:
            return
        if len(items) != done:
            done, beats = len(items), 0
        beats += 1
        # MCP requires progress to grow, so each heartbeat comes closer to the next integer without reaching
        # it.
        await ctx.progress(done + beats / (beats + 1), total=total)


def _summarize(ends: list[Completion | BridgeError]) -> Answer[BatchResult]:
    """List the items, with equal errors grouped; raises if every prompt failed."""
    results = []
    completions = []
    groups: dict[bytes, BatchError] = {}
    steps: dict[int, str] = {}
    for index, end in enumerate(ends):
        if isinstance(end, Completion):
            completions.append(end)
            results.append(BatchItem(index, end.text, end.incomplete, end.metadata.from_cache))
        else:
            results.append(BatchItem(index, error=end.code.upper()))
            steps[index] = end.next_step
            body = describe(end)
            # Prompts with equal errors share one entry, unless it contains part of their answer.
            key = write([body.code, body.message, body.content])
            groups.setdefault(key, BatchError([], body)).indexes.append(index)
    errors = list(groups.values())
    if not completions:
        first = errors[0].error
        failures = Counter[tuple[str, str]]()
        for group in errors:
            failures[group.error.code, group.error.message] += len(group.indexes)
        message = first.message
        if len(failures) > 1:
            message = " ".join(f"{count} × {code}: {text}" for (code, text), count in failures.items())
        received = [
            {"index": index, "content": group.error.content}
            for group in errors
            for index in group.indexes
            if group.error.content
        ]
        raise MercuryError(
            first.code,
            f"All {len(ends)} prompts failed. {message}",
            next_step="",  # each message ends with its own next step
            retry_after=first.retry_after,
            content=write(received).decode() if received else None,
        )
    for group in errors:
        # Next steps name tools, so the engine adds them: it knows which tools are offered.
        step = steps[group.indexes[0]]
        group.error.message = group.error.message.removesuffix(f" {step}")
    metadata = [completion.metadata for completion in completions]
    costs = [answer.cost_usd for answer in metadata if answer.cost_usd is not None]
    unknown = len(metadata) - len(costs)
    notes = (f"What {unknown} of the answers cost is not known.",) if unknown else ()
    result = BatchResult(
        results,
        len(completions),
        len(ends) - len(completions),
        sum(answer.usage.total_tokens for answer in metadata if answer.usage),
        list(dict.fromkeys(answer.model for answer in metadata)),
        round(sum(costs), 12) if costs else UNSET,
        list(dict.fromkeys(warning for answer in metadata for warning in answer.warnings or ())) or UNSET,
        errors or UNSET,
    )
    return Answer(
        structured=result, notes=notes, next=tuple(dict.fromkeys(step for step in steps.values() if step))
    )
