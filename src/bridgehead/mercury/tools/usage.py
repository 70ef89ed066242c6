"""The tool `mercury_usage`: tokens, cost, cache and limits, since the start, today and before."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from bridgehead.mcp import Bridge, Context

from ..calling.call import ANONYMOUS, identify_account
from ..calling.service import Service
from ..calling.usage import Span, UsageCounts

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
    """A budget, of all processes of this user."""

    day: str
    limit_usd: float
    committed_usd: float
    left_usd: float
    is_monthly: bool = False
    client: str | None = None
    """Whose it is; without, everybody's."""


Dimension = Literal["day", "model", "client"]


class UsageArguments(Struct, forbid_unknown_fields=True):
    """What of the past is to be told as well."""

    days: Annotated[
        int, Meta(ge=0, le=400, description="Also report the usage of so many days up to today; 0 is none")
    ] = 0
    by: Annotated[
        tuple[Dimension, ...], Meta(description="What to tell the usage of these days apart by")
    ] = ("day",)


class UsageOfPast(Struct, omit_defaults=True):
    """What was used on a day, of a model or by a client, as far as it was asked for."""

    day: str | None
    model: str | None
    client: str | None
    usage: UsageCounts


class UsageReport(Struct, omit_defaults=True):
    """Everything there is to know of usage."""

    since_start: UsedByModel
    today: UsedByModel
    cache: CacheState
    limits_left: dict[str, dict[str, int]]
    budget: BudgetState | None = None
    further_budgets: list[BudgetState] = []
    history: list[UsageOfPast] = []
    is_service_down: bool = False


def declare(bridge: Bridge[Service]) -> None:
    """Declare the tool."""
    bridge.tool(
        "Report what was used: calls, tokens and cost by model, since this server started and today over all "
        "of this user's servers, cache hits, what is left of the rate limits and of the budgets; on "
        "request the history by day, model and client.",
        name=USAGE,
        title="Mercury usage",
        read_only=True,
        idempotent=True,
        open_world=False,
    )(report)


async def report(args: UsageArguments, ctx: Context[Service]) -> UsageReport:
    """Report what was used."""
    service = ctx.state
    cache = service.cache
    budgets = await _budget_states(service, ctx)
    today = next((one for one in budgets if not (one.is_monthly or one.client)), None)
    return UsageReport(
        _by_model(service.usage.models),
        _by_model(await service.usage.today()),
        CacheState(cache.entries, cache.size, cache.hits, cache.misses, cache.joined),
        service.limits.left(identify_account(ctx)),
        today,
        [one for one in budgets if one is not today],
        await _history(service, args) if args.days else [],
        service.breaker.is_open,
    )


async def _history(service: Service, args: UsageArguments) -> list[UsageOfPast]:
    span = Span.ending(service.usage_store.today, args.days)
    rows = await service.usage.history(span, args.by)
    return [UsageOfPast(row.day or None, row.model or None, row.client or None, row.counts) for row in rows]


async def _budget_states(service: Service, ctx: Context[Service]) -> list[BudgetState]:
    day, spending = await service.budget.spending(ctx.connection.principal or ANONYMOUS)
    return [
        BudgetState(
            day,
            one.cap.limit,
            round(one.committed, 9),
            round(max(0.0, one.cap.limit - one.committed), 9),
            one.cap.is_monthly,
            one.cap.client,
        )
        for one in spending
    ]


def _by_model(models: dict[str, UsageCounts]) -> UsedByModel:
    total = UsageCounts()
    for tally in models.values():
        total.add(tally)
    return UsedByModel(total, models)
