"""The tool `mercury_usage`: tokens, cost, cache, limits and budgets."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from bridgehead.mcp import Answer, Bridge, Context
from bridgehead.runtime.callers import is_operator

from ..calling.call import ANONYMOUS, identify_account
from ..calling.service import Service
from ..calling.usage import Span, UsageCounts

USAGE = "mercury_usage"
_OWN_HISTORY = (
    "history is that of your own token; since_start and today are everybody's. "
    "A token made with --dashboard or --admin sees the history of all clients."
)


class UsedByModel(Struct):
    """Usage in total and by model."""

    total: UsageCounts
    models: dict[str, UsageCounts]


class CacheState(Struct):
    """Content of the cache, and its hits since the start."""

    entries: int
    bytes: int
    hits: int
    misses: int
    shared: int


class BudgetState(Struct, omit_defaults=True):
    """The day's budget, shared by all processes. Committed is settled plus uncertain plus reserved."""

    day: str
    limit_usd: float
    committed_usd: float
    left_usd: float
    settled_usd: float
    uncertain_usd: float
    reserved_usd: float


Dimension = Literal["day", "model", "client"]


class UsageArguments(Struct, forbid_unknown_fields=True):
    """How much history to add, and how to split it."""

    days: Annotated[int, Meta(ge=0, le=400, description="History to add, up to 400 days")] = 0
    by: Annotated[tuple[Dimension, ...], Meta(description="How to split the history; default day")] = ("day",)


Row = dict[str, str | float]
"""Named figures. As structs, these would cost every model that reads the tool list 300 tokens more."""


class UsageReport(Struct, omit_defaults=True):
    """The result of the tool."""

    since_start: UsedByModel
    today: UsedByModel
    cache: CacheState
    limits_left: dict[str, dict[str, int]]
    budget: BudgetState | None = None
    further_budgets: list[Row] = []
    history: list[Row] = []
    is_service_down: bool = False


def declare(bridge: Bridge[Service]) -> None:
    """Declare the tool."""
    bridge.tool(
        "Report calls, tokens and cost by model (since this server started, and today over all servers of "
        "this user), cache hits, and what is left of rate limits and budgets; with days, the history too.",
        name=USAGE,
        title="Mercury usage",
        read_only=True,
        idempotent=True,
        open_world=False,
    )(report)


async def report(args: UsageArguments, ctx: Context[Service]) -> Answer[UsageReport]:
    """Report usage, cache, limits and budgets."""
    service, cache = ctx.state, ctx.state.cache
    day, budgets = await service.budget.spending(ctx.connection.principal or ANONYMOUS)
    daily: BudgetState | None = None
    further: list[Row] = []
    for spending in budgets:
        cap = spending.cap
        amounts = {
            "limit_usd": cap.limit,
            "committed_usd": spending.committed,
            "left_usd": spending.left,
            "settled_usd": spending.settled,
            "uncertain_usd": spending.uncertain,
            "reserved_usd": spending.reserved,
        }
        rounded = {name: round(amount, 9) for name, amount in amounts.items()}
        # `budget` is the day's shared one; monthly budgets and those of clients are listed separately.
        if cap.client is None and not cap.is_monthly:
            daily = daily or BudgetState(day, **rounded)
        else:
            client = {} if cap.client is None else {"client": cap.client}
            further.append({"period": cap.period, **client, **rounded})
    history: list[Row] = []
    notes: tuple[str, ...] = ()
    if args.days:
        # A token sees its own history alone: with fewer dimensions, the sums would reveal other callers'
        # usage.
        own = None if is_operator.get() else ctx.connection.principal or ANONYMOUS
        if own is not None:
            notes = (_OWN_HISTORY,)
        rows = await service.usage.history(Span.ending(service.usage.today, args.days), args.by, own)
        history = [{**{name: getattr(row, name) for name in args.by}, **asdict(row.counts)} for row in rows]
    usage = UsageReport(
        _by_model(service.usage.models),
        _by_model(await service.usage.read_today()),
        CacheState(cache.entries, cache.size, cache.hits, cache.misses, cache.joined),
        await service.rate_limits.left(identify_account(ctx)),
        daily,
        further,
        history,
        bool(service.providers_down),
    )
    return Answer(structured=usage, notes=notes)


def _by_model(models: dict[str, UsageCounts]) -> UsedByModel:
    total = UsageCounts()
    for tally in models.values():
        total.add(tally)
    return UsedByModel(total, models)
