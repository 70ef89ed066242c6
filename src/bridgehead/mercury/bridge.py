"""The mercury bridge, put together: its manifest, and one service that lives as long as it serves."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bridgehead import __version__
from bridgehead.mcp import Bridge
from bridgehead.runtime.manifest import Commands, FarSide, FormField, Manifest, Trial
from bridgehead.runtime.offering import offered

from . import usage
from .calling.service import Service, open_service
from .dialect import MercuryDialect
from .settings import MercurySettings
from .tools import batch, chat, code, models, prompts

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rich.console import Console

    from bridgehead.runtime.findings import Finding
    from bridgehead.runtime.metrics import Metrics

_INSTRUCTIONS = (
    "Mercury is a diffusion LLM that answers very fast. mercury_chat_completion asks it, mercury_chat_stream "
    "shows the answer as it grows, mercury_fim_completion fills a gap in code, mercury_edit_completion edits "
    "code, mercury_batch answers many prompts, mercury_list_models tells which models there are, "
    "mercury_usage what was used. Failures are JSON: error.type, error.message with the next step, "
    "error.code, error.retry_after."
)


def make(
    settings: MercurySettings,
    begin: Callable[[], None] = lambda: None,
    on_open: Callable[[Service], None] = lambda _: None,
) -> Bridge[Service]:
    """Make the bridge. Nothing is opened until it is served: first `begin` is called, then `on_open`."""

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[Service]:
        begin()
        async with open_service(settings) as service:
            on_open(service)
            yield service

    bridge: Bridge[Service] = Bridge(
        "mercury",
        __version__,
        title="Mercury",
        description="The Mercury diffusion LLM as tools.",
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        dialect=MercuryDialect(),
    )
    for part in (chat, code, models, batch, usage, prompts):
        part.declare(bridge)
    return bridge


def _make(settings: MercurySettings, metrics: Metrics | None) -> Bridge[Service]:
    return make(settings) if metrics is None else make(settings, on_open=_Usage(metrics).take)


_USED = {
    "calls": "Calls that were answered, from the API or from the cache.",
    "errors": "Calls that failed.",
    "cache_hits": "Calls that were answered from the cache.",
    "prompt_tokens": "Tokens that were sent.",
    "completion_tokens": "Tokens that came back.",
    "cost_usd": "What it cost, in US dollars, by the live price list.",
}


class _Usage:
    """What was used of each model, for whoever reads the metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._service: Service | None = None
        for field, about in _USED.items():
            metrics.total(f"mercury_{field}_total", about, self._reader(field), "model")

    def take(self, service: Service) -> None:
        """Read from a service that has been opened."""
        self._service = service

    def _reader(self, field: str) -> Callable[[], dict[tuple[str, ...], float]]:
        def read() -> dict[tuple[str, ...], float]:
            models = {} if self._service is None else self._service.accounts.models
            return {(model,): float(getattr(tally, field)) for model, tally in models.items()}

        return read


def far_side(service: Service | None) -> FarSide:
    """Tell whether there is a key, and whether the API answered when it was last asked."""
    if service is None:
        return FarSide(is_there=False, says="The API has not been spoken to yet.")
    if not service.keys.count:
        return FarSide(is_there=False, says="There is no API key: set MERCURY_API_KEY.")
    if service.breaker.is_open:
        return FarSide(is_there=False, says="The API keeps failing and is left alone for a moment.")
    return FarSide(is_there=True, says=f"{service.keys.count} key(s) for {service.settings.api_url}.")


def serve(environment: Mapping[str, str]) -> int:
    """Serve over stdio or HTTP, as the settings say, and return the exit status."""
    settings = MercurySettings(environment)
    bridge = offered(make(settings, settings.configure_logs), environment)
    if settings.transport == "http":
        return _serve_http(bridge, settings)
    from bridgehead.mcp import stdio

    return stdio.run(bridge, loop_factory=_make_loop)


def _make_loop() -> AbstractEventLoop:
    """Make the loop: this bridge lives on sockets, and a call adds a third less time on one for these."""
    from bridgehead.mcp.process import socket_loop

    return socket_loop()


def _serve_http(bridge: Bridge[Service], settings: MercurySettings) -> int:
    from bridgehead.mcp.http import application, run
    from bridgehead.mcp.http.guard import LOOPBACK

    app = application(bridge, allowed_hosts={*LOOPBACK, settings.host})
    try:
        run(app, settings.host, settings.port)
    except OSError as problem:
        where, why = f"{settings.host}:{settings.port}", problem.strerror or problem
        sys.stderr.write(f"bridgehead mercury: cannot listen on {where}: {why}\n")
        return 1
    return 0


async def _doctor(environment: Mapping[str, str]) -> list[Finding]:
    from .doctor import examine

    return await examine(environment)


def _demo(console: Console) -> bool:
    from .demo import tour

    return tour(console)


def _trial(folder: Path) -> AbstractContextManager[Trial]:
    from .demo import trial

    return trial(folder)


def _commands() -> Commands:
    from . import commands

    return commands


manifest = Manifest(
    name="mercury",
    title="Mercury",
    summary="the Mercury diffusion LLM: chat, streams, code, edits",
    description="The Mercury diffusion LLM as tools: chat, streams, code completion, edits.",
    settings=MercurySettings,
    make=_make,
    far_side=far_side,
    doctor=_doctor,
    demo=_demo,
    trial=_trial,
    commands=_commands,
    serve=serve,
    form=(
        FormField("MERCURY_API_KEY", "API key", is_required=True),
        FormField("MERCURY_MODEL", "Model"),
        FormField("MERCURY_BUDGET_USD", "Budget a day in US dollars"),
    ),
)
