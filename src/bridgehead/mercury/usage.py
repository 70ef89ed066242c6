"""The tool `mercury_usage`: tokens, cost, cache and limits, since the start and today."""

from __future__ import annotations

from msgspec import Struct

from bridgehead.mcp import Bridge, Context, NoArguments

from .calling.call import client_of
from .calling.service import Service
from .tally import Tally

USAGE = "mercury_usage"


class UsedByModel(Struct):
    """What was used, in all and by model."""

    total: Tally
    models: dict[str, Tally]


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
    return await ctx.state.audited(USAGE, ctx, _report(ctx.state, client_of(ctx)))


async def _report(service: Service, client: str) -> UsageReport:
    day = await service.accounts.today()
    cache, budget = service.cache, service.accounts.budget
    money = None
    if budget is not None:
        left = max(0.0, budget - day.committed_usd)
        money = BudgetState(day.day, budget, round(day.committed_usd, 9), round(left, 9))
    return UsageReport(
        _by_model(service.accounts.models),
        _by_model(day.models),
        CacheState(cache.entries, cache.size, cache.hits, cache.misses, cache.joined),
        service.limits.left(client),
        money,
        service.breaker.is_open,
    )


def _by_model(models: dict[str, Tally]) -> UsedByModel:
    total = Tally()
    for tally in models.values():
        total.add(tally)
    return UsedByModel(total, models)
