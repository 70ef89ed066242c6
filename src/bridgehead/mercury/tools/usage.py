"""The tool `mercury_usage`: tokens, cost, cache and limits, since the start, today and before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from bridgehead.mcp import Bridge, Context

from ..calling.call import ANONYMOUS, identify_account
from ..calling.service import Service
from ..calling.usage import Span, UsageCounts

if TYPE_CHECKING:
    from ..calling.budget import Spending

USAGE = "mercury_usage"


class UsedByModel(Struct):
    """What was used, in all and by model."""

    total: UsageCounts
    models: dict[str, UsageCounts]


class CacheState(Struct):
    """What is in the cache, and how often it helped."""

    entries: int
    bytes: int
    hits: int
    misses: int
    shared: int


class BudgetState(Struct, omit_defaults=True):
    """The day's money, of all processes that share it. Committed is settled, uncertain and reserved."""

    day: str
    limit_usd: float
    committed_usd: float
    left_usd: float
    settled_usd: float
    uncertain_usd: float
    reserved_usd: float


Dimension = Literal["day", "model", "client"]


class UsageArguments(Struct, forbid_unknown_fields=True):
    """What of the past is to be told as well."""

    days: Annotated[
        int, Meta(ge=0, le=400, description="Also report the history of so many days up to today")
    ] = 0
    by: Annotated[tuple[Dimension, ...], Meta(description="How to split the history")] = ("day",)


Row = dict[str, str | float]
"""Named figures. As structs, these would cost every model that reads the tool list 300 tokens more."""


class UsageReport(Struct, omit_defaults=True):
    """Everything there is to know of usage."""

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


async def report(args: UsageArguments, ctx: Context[Service]) -> UsageReport:
    """Report what was used."""
    service, cache = ctx.state, ctx.state.cache
    day, budgets = await service.budget.spending(ctx.connection.principal or ANONYMOUS)
    return UsageReport(
        _by_model(service.usage.models),
        _by_model(await service.usage.read_today()),
        CacheState(cache.entries, cache.size, cache.hits, cache.misses, cache.joined),
        await service.rate_limits.left(identify_account(ctx)),
        next((BudgetState(day, **_amounts(one)) for one in budgets if _is_the_days(one)), None),
        [_further_budget(one) for one in budgets if not _is_the_days(one)],
        await _history(service, args) if args.days else [],
        bool(service.providers_down),
    )


async def _history(service: Service, args: UsageArguments) -> list[Row]:
    rows = await service.usage.history(Span.ending(service.usage.today, args.days), args.by)
    return [{**{name: getattr(row, name) for name in args.by}, **asdict(row.counts)} for row in rows]


def _is_the_days(spending: Spending) -> bool:
    return spending.cap.client is None and not spending.cap.is_monthly


def _amounts(spending: Spending) -> dict[str, float]:
    amounts = {
        "limit_usd": spending.cap.limit,
        "committed_usd": spending.committed,
        "left_usd": spending.left,
        "settled_usd": spending.settled,
        "uncertain_usd": spending.uncertain,
        "reserved_usd": spending.reserved,
    }
    return {name: round(amount, 9) for name, amount in amounts.items()}


def _further_budget(spending: Spending) -> Row:
    client = spending.cap.client
    whose = {} if client is None else {"client": client}
    return {"period": spending.cap.period, **whose, **_amounts(spending)}


def _by_model(models: dict[str, UsageCounts]) -> UsedByModel:
    total = UsageCounts()
    for tally in models.values():
        total.add(tally)
    return UsedByModel(total, models)
