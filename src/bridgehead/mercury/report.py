"""Report: providers, money, and usage by day, model and client for the host's page."""

from __future__ import annotations

from datetime import date, timedelta

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Chart, ChartBar, Fact, Report, ReportTable

from .calling.service import Service
from .calling.usage import Span, UsageCounts, UsageRow

DAYS = 14
_FIGURES = ("Calls", "Failed", "From cache", "Tokens in", "Tokens out", "Cost", "Uncertain", "Reserved")


async def report(service: Service) -> Report:
    """Report providers, budgets and the usage of all processes of this user in the last `DAYS` days."""
    span = Span.ending(service.usage.today, DAYS)
    try:
        _, budgets = await service.budget.spending("")
        by_day = await service.usage.history(span, ("day",))
        by_model = await service.usage.history(span, ("model",))
        by_client = await service.usage.history(span, ("client",))
    except BridgeError as problem:
        return Report(facts=(*_describe_api(service), Fact("Usage", str(problem))))
    total = UsageCounts()
    for row in by_model:
        total.add(row.counts)
    # `spending("")` includes the per-client budgets of a client without a name.
    shared = [spending for spending in budgets if spending.cap.client is None]
    limits = [
        Fact(
            f"Budget of the {budget.cap.period}",
            f"{_dollars(budget.committed)} of {_dollars(budget.cap.limit)}",
        )
        for budget in shared
    ]
    facts = (
        *(limits or [Fact("Budget", "no limit")]),
        Fact(f"Settled in {DAYS} days", _dollars(total.cost_usd)),
        Fact("Uncertain", f"{_dollars(total.uncertain_usd)}, {total.uncertain_sends:,} requests"),
        Fact("Reserved now", _dollars(total.reserved_usd)),
        *_describe_api(service),
    )
    counts = {row.day: row.counts for row in by_day}
    first = date.fromisoformat(span.first)
    days = [(first + timedelta(days=number)).isoformat() for number in range(DAYS)]
    # Days without usage have no row, and still need their column.
    columns = [(day[5:], counts.get(day, UsageCounts())) for day in days]
    charts = (
        Chart(
            f"Calls a day, {DAYS} days",
            tuple(ChartBar(day, used.calls, f"{used.calls:,} calls") for day, used in columns),
            "columns",
        ),
        Chart(
            "Cost a day, US dollars",
            tuple(ChartBar(day, used.cost_usd, _dollars(used.cost_usd)) for day, used in columns),
            "columns",
        ),
    )
    return Report(facts, charts, (_tabulate("model", by_model), _tabulate("client", by_client)))


def _describe_api(service: Service) -> tuple[Fact, ...]:
    cache = service.cache
    lookups = cache.hits + cache.misses
    down = set(service.providers_down)
    providers = (
        Fact(
            f"Provider {name}",
            "paused for a while: it keeps failing" if name in down else provider.problem or "up",
        )
        for name, provider in service.providers.items()
    )
    return (
        Fact("Model", service.settings.model),
        Fact("Keys", str(service.keys.count)),
        Fact("Models listed", str(len(service.catalogue.names))),
        Fact(
            "Cache", f"{cache.entries:,} answers, {100 * cache.hits / lookups if lookups else 0:.0f} % hits"
        ),
        *providers,
    )


def _tabulate(dimension: str, history: list[UsageRow]) -> ReportTable:
    # Most expensive first. Uncertain money counts: it may have been spent.
    def rank(row: UsageRow) -> tuple[float, int, str]:
        return -row.counts.cost_usd - row.counts.uncertain_usd, -row.counts.calls, getattr(row, dimension)

    rows = []
    for row in sorted(history, key=rank):
        used = row.counts
        numbers = (used.calls, used.errors, used.cache_hits, used.prompt_tokens, used.completion_tokens)
        money = (used.cost_usd, used.uncertain_usd, used.reserved_usd)
        rows.append((getattr(row, dimension), *(f"{number:,}" for number in numbers), *map(_dollars, money)))
    title = f"Usage by {dimension}, {DAYS} days"
    return ReportTable(title, (dimension.capitalize(), *_FIGURES), tuple(rows), frozenset(_FIGURES))


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"
