"""The mercury bridge: its tools, prompts and resource, over one service that lives as long as it serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bridgehead import __version__
from bridgehead.mcp import Bridge

from . import usage
from .calling.audit import audit_calls
from .calling.service import Service, open_service
from .errors import MercuryDialect
from .settings import MercurySettings
from .tools import batch, chat, code, models, prompts

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
    audit_calls(bridge)
    return bridge
