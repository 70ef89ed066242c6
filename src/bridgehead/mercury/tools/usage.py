"""The tool `mercury_usage`: tokens, cost, cache and limits, since the start and today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from bridgehead.mcp import Bridge, Context, NoArguments

from ..calling.call import identify_client
from ..calling.service import Service
from ..calling.usage import UsageCounts

if TYPE_CHECKING:
    from ..calling.budget import Budget

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


class BudgetState(Struct):
    """The day's money, of all processes of this user."""

    day: str
    limit_usd: float
    committed_usd: float
    left_usd: float


class UsageReport(Struct, omit_defaults=True):
    """Everything there is to know of usage."""

    since_start: UsedByModel
    today: UsedByModel
    cache: CacheState
    limits_left: dict[str, dict[str, int]]
    budget: BudgetState | None = None
    is_service_down: bool = False


def declare(bridge: Bridge[Service]) -> None:
    """Declare the tool."""
    bridge.tool(
        "Report what was used: calls, tokens and cost by model, since this server started and today over all "
        "of this user's servers, cache hits, what is left of the rate limits and of the day's budget.",
        name=USAGE,
        title="Mercury usage",
        read_only=True,
        idempotent=True,
        open_world=False,
    )(report)


async def report(args: NoArguments, ctx: Context[Service]) -> UsageReport:
    """Report what was used."""
    service = ctx.state
    cache = service.cache
    return UsageReport(
        _by_model(service.usage.models),
        _by_model(await service.usage.today()),
        CacheState(cache.entries, cache.size, cache.hits, cache.misses, cache.joined),
        service.limits.left(identify_client(ctx)),
        await _budget_state(service.budget),
        service.breaker.is_open,
    )


async def _budget_state(budget: Budget) -> BudgetState | None:
    if budget.limit is None:
        return None
    day, committed = await budget.committed_today()
    left = max(0.0, budget.limit - committed)
    return BudgetState(day, budget.limit, round(committed, 9), round(left, 9))


def _by_model(models: dict[str, UsageCounts]) -> UsedByModel:
    total = UsageCounts()
    for tally in models.values():
        total.add(tally)
    return UsedByModel(total, models)
