"""The tool `mercury_batch`: many prompts in one call, each with a result or an error of its own."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from bridgehead.mcp import Bridge, Context
from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.errors import BridgeError

from ..api.wire import CHAT
from ..calling.service import Service
from ..completion import Metadata
from ..errors import ErrorBody, describe
from ..settings import MercurySettings
from .arguments import Chat, ChatMessage, ChatOptions

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
    content: str | None = None
    metadata: Metadata | None = None
    error: ErrorBody | None = None


class BatchResult(Struct):
    """What came of all prompts, in their order."""

    results: list[BatchItem]
    succeeded: int
    failed: int
    total_tokens: int
    cost_usd: float


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the tool."""
    bridge.tool(
        "Answer many independent prompts in one call, several at once. The results are in the order of the "
        "prompts, each with its content and metadata or with its own error; one that fails stops no other.",
        name=BATCH,
        title="Mercury batch",
        read_only=True,
        paid=True,
        open_world=True,
        defaults={"model": settings.model},
    )(run)


async def run(args: Batch, ctx: Context[Service]) -> BatchResult:
    """Answer the prompts."""
    waiting = iter(range(len(args.prompts)))
    items: dict[int, BatchItem] = {}

    async def work() -> None:
        for index in waiting:
            items[index] = await _complete_prompt(index, args, ctx)
            await ctx.progress(len(items), total=len(args.prompts))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(args.concurrency, len(args.prompts))):
            group.create_task(work())
    return _summarize([items[index] for index in range(len(args.prompts))])


async def _complete_prompt(index: int, args: Batch, ctx: Context[Service]) -> BatchItem:
    service = ctx.state
    try:
        call = service.make_call(BATCH, CHAT, _make_chat(args, args.prompts[index]), ctx)
        now = service.clock.monotonic()
        cached = service.completer.lookup(call, ctx, now)
        completion = await service.completer.complete(call, ctx) if cached is None else cached.at(now)
    except BridgeError as error:
        return BatchItem(index, error=describe(error))
    return BatchItem(index, completion.content, completion.metadata)


def _make_chat(args: Batch, prompt: str) -> Chat:
    messages = [ChatMessage("user", prompt)]
    if args.system is not UNSET:
        messages.insert(0, ChatMessage("system", args.system))
    options = {name: value for name, value in asdict(args).items() if name in ChatOptions.__struct_fields__}
    return Chat(messages=messages, **options)


def _summarize(items: list[BatchItem]) -> BatchResult:
    done = [item.metadata for item in items if item.metadata is not None]
    return BatchResult(
        items,
        len(done),
        len(items) - len(done),
        sum(metadata.usage.total_tokens for metadata in done),
        round(sum(metadata.cost_usd or 0.0 for metadata in done), 12),
    )
