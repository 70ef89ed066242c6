"""The mercury bridge: its manifest, its metrics, and how it is served."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from bridgehead import __version__
from bridgehead.mcp import Bridge, socket_loop, stdio
from bridgehead.runtime.manifest import FarSide, FormField, Kept, Manifest
from bridgehead.runtime.metrics import Metrics

from .calling.audit import audit_calls
from .calling.provider import Provider
from .calling.routes import MERCURY
from .calling.service import Service, open_service
from .errors import MercuryDialect
from .report import report
from .settings import TOOLSETS, MercurySettings
from .tools import (
    batch,
    chat,
    code,
    decide,
    diffusion,
    edits,
    embeddings,
    fine_tuning,
    models,
    prompts,
    usage,
)

if TYPE_CHECKING:
    from bridgehead.runtime.findings import Report
    from bridgehead.runtime.stores import migrations

_INSTRUCTIONS = (
    "Mercury is a diffusion LLM that answers very fast. mercury_chat_completion asks it; mercury_chat_stream "
    "shows the answer as it grows; mercury_fim_completion fills a gap in code; mercury_apply_edit and "
    "mercury_next_edit edit code; mercury_decide answers questions with probabilities; mercury_batch answers "
    "many prompts; mercury_list_models tells which models there are; mercury_usage tells what was used. "
    "Failures are JSON: error.type, error.message with the next step, error.code, error.retry_after."
)


def make_bridge(settings: MercurySettings, metrics: Metrics | None = None) -> Bridge[Service]:
    """Make the bridge. Nothing is opened until it is served."""
    # Empty until the bridge is served; metrics are declared earlier.
    opened: list[Service] = []
    if metrics is not None:
        _declare_metrics(metrics, lambda: opened)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[Service]:
        async with open_service(settings) as service:
            opened[:] = [service]
            yield service

    bridge: Bridge[Service] = Bridge(
        "mercury",
        __version__,
        title="Mercury",
        description="The Mercury diffusion LLM as tools.",
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        dialect=MercuryDialect(),
        # Words for Claude Code's tool search; no model sees them.
        tool_meta={"anthropic/searchHint": "Mercury diffusion LLM: fast completions and code edits"},
        # Every conversation carries the tool list; an outline is half as long as the full schemas.
        output_schemas="outline",
        # The contract refuses numbers in quotes. Tests check the declarations; doing it here takes up to 5 ms
        # of the start.
        numeric_strings=False,
        checked=False,
    )
    diffusion.declare(bridge)
    for completing in (chat, code, edits, decide, batch):
        completing.declare(bridge, settings)
    for part in (models, usage, prompts):
        part.declare(bridge)
    # Lazy: Mercury has neither, and few configurations name a provider that does.
    if settings.embedding_target[1]:
        embeddings.declare(bridge, settings)
    if settings.fine_tuning:
        fine_tuning.declare(bridge)
    TOOLSETS.restrict(bridge, settings.toolsets)
    audit_calls(bridge)
    return bridge


_USED = {
    "calls": "Calls, whether they were answered or failed.",
    "errors": "Calls that failed.",
    "cache_hits": "Calls that were answered from the cache.",
    "prompt_tokens": "Tokens that were sent.",
    "completion_tokens": "Tokens that came back.",
    "cost_usd": "What it cost, in US dollars, as the API reported it or by the live price list.",
    "uncertain_usd": "The most that sends may have cost whose end is not known, in US dollars.",
}


def _declare_metrics(metrics: Metrics, find_services: Callable[[], list[Service]]) -> None:
    """Declare metrics that are read from the service when scraped; without a service they have no values."""

    def read_usage(field: str) -> dict[tuple[str, ...], float]:
        return {
            (model,): float(getattr(counts, field))
            for service in find_services()
            for model, counts in service.usage.models.items()
        }

    def read_providers(is_set: Callable[[Provider], bool]) -> dict[tuple[str, ...], float]:
        return {
            (name,): float(is_set(provider))
            for service in find_services()
            for name, provider in service.providers.items()
        }

    def read_budget() -> dict[tuple[str, ...], float]:
        return {
            (period,): left for service in find_services() for period, left in service.budget.left().items()
        }

    for field, about in _USED.items():
        metrics.total(f"bridgehead_mercury_{field}_total", about, partial(read_usage, field), "model")
    metrics.gauge(
        "bridgehead_mercury_provider_up",
        "Whether a provider answered when it was last checked.",
        partial(read_providers, lambda provider: not provider.problem),
        "provider",
    )
    metrics.gauge(
        "bridgehead_mercury_breaker_open",
        "Whether a provider's circuit breaker is open.",
        partial(read_providers, lambda provider: provider.breaker.is_open),
        "provider",
    )
    metrics.gauge(
        "bridgehead_mercury_budget_left_usd",
        "The rest of the shared budget, in US dollars.",
        read_budget,
        "period",
    )


def far_side(service: Service | None) -> FarSide:
    """Report the API as up if there is a key and the last request or check succeeded.

    Without a key of Mercury, the providers of the routes file decide.
    """
    if service is None:
        return FarSide(is_up=False, detail="The API has not been called yet.")
    usable = [name for name, provider in service.providers.items() if provider.keys.count]
    if not usable:
        return FarSide(is_up=False, detail="There is no API key: set MERCURY_API_KEY.")
    if problem := service.budget.problem:
        return FarSide(is_up=False, detail=f"Paid calls fail, because there is a budget: {problem}")
    down = service.providers_down
    down += [name for name, provider in service.providers.items() if provider.problem and name not in down]
    # With Mercury's own key most calls need its API; without one, any provider that works is enough.
    if MERCURY in usable and MERCURY in down:
        paused = "The API keeps failing, so nothing is sent to it for a moment."
        return FarSide(is_up=False, detail=service.mercury.problem or paused)
    if down:
        is_up = any(name not in down for name in usable)
        return FarSide(is_up=is_up, detail=f"Providers that keep failing: {', '.join(down)}.")
    if MERCURY not in usable:
        return FarSide(is_up=True, detail=f"No key for Mercury; calls go to {', '.join(usable)}.")
    count = service.keys.count
    keys = "1 key" if count == 1 else f"{count} keys"
    return FarSide(is_up=True, detail=f"{keys} for {service.settings.api_url}.")


async def probe(service: Service) -> None:
    """Check the API without a paid call; `far_side` reports the result."""
    await service.check()


def serve(bridge: Bridge[Service], settings: MercurySettings) -> int:
    """Serve over the transport in the settings; return the exit status."""
    if settings.transport == "http":
        from bridgehead.mcp.http import LOOPBACK, application, run  # lazy: HTTP, 7 ms

        from .pages import make_pages

        settings.configure_logs()

        def find_services() -> list[Service]:
            lifespans = app.dispatcher.lifespans
            values = [lifespans[part].value for part in bridge.bridges]
            return [value for value in values if isinstance(value, Service)]  # empty until it is open

        metrics = Metrics()
        _declare_metrics(metrics, find_services)
        pages = make_pages(lambda: far_side(next(iter(find_services()), None)), metrics)
        app = application(bridge, allowed_hosts={*LOOPBACK, settings.host}, pages=pages)
        try:
            run(app, settings.host, settings.port)
        except OSError as problem:
            where, why = f"{settings.host}:{settings.port}", problem.strerror or problem
            sys.stderr.write(f"bridgehead mercury: cannot listen on {where}: {why}\n")
            return 1
        return 0
    settings.configure_logs()
    # Calls of this bridge wait on sockets, where `socket_loop` cuts the time that it adds to each by a third.
    return stdio.run(bridge, loop_factory=socket_loop)


def first_step(settings: MercurySettings) -> str:
    """Ask for a key if none is set; else suggest a first prompt."""
    if not settings.api_keys and settings.api_key_file is None:
        return (
            "Set MERCURY_API_KEY to a key from platform.inceptionlabs.ai, and run this again. "
            "Without a key, run `bridgehead mercury simulate`."
        )
    return "Ask your agent: “Let Mercury write a regular expression for ISO dates.”"


# The modules behind these two are imported on use: every start loads the manifest.


async def _report(service: Service) -> Report:
    return await report(service)


def _schema() -> migrations.Schema:
    from .calling.postgres_usage import read_schema  # lazy: PostgreSQL, 14 ms

    return read_schema()


manifest = Manifest(
    package=__package__,
    name="mercury",
    title="Mercury",
    summary="the Mercury diffusion LLM: chat, streams, code, edits",
    description="The Mercury diffusion LLM as tools: chat, streams, code completion, edits.",
    keywords=("mercury", "diffusion-llm", "code-completion", "code-editing", "chat"),
    settings=MercurySettings,
    make=make_bridge,
    far_side=far_side,
    probe=probe,
    report=_report,
    schema=_schema,
    serve=serve,
    first_step=first_step,
    keeps=(Kept("state", "mercury", "usage, budgets and tasks"),),
    form=(
        FormField("MERCURY_API_KEY", "API key", is_required=True),
        FormField("MERCURY_MODEL", "Model"),
        FormField(
            "MERCURY_BUDGET_USD",
            "Budget a day in US dollars",
            question="How many US dollars a day may Mercury cost? (empty: no limit)",
        ),
    ),
)
