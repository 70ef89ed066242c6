"""The tool `mercury_fine_tuning_status`: the fine-tuning jobs of a provider that offers them.

Mercury itself does not. Offered only if MERCURY_FINE_TUNING names a provider. It reads, and costs nothing.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Meta, Struct

from bridgehead.mcp import UNDECODABLE, Arguments, Bridge, Context

from ..api import wire
from ..calling.service import Service
from ..errors import MercuryError

FINE_TUNING_STATUS = "mercury_fine_tuning_status"
_PATH = "/fine_tuning/jobs"


class FineTuningArguments(Arguments):
    """Which job to report."""

    job: Annotated[
        str, Meta(min_length=1, max_length=200, description="Its id; default: the latest jobs")
    ] = ""


class FineTuningJob(Struct, omit_defaults=True):
    """One job, with the provider's own words for its state."""

    id: str
    status: str = "unknown"
    model: str | None = None
    fine_tuned_model: str | None = None
    created_at: float | None = None
    finished_at: float | None = None
    trained_tokens: int | None = None
    error: Any = None


class FineTuningJobs(Struct):
    """Jobs, the newest first."""

    jobs: list[FineTuningJob]


class _Page(Struct):
    data: list[FineTuningJob]


_read_job = wire.make_reader(FineTuningJob)
_read_page = wire.make_reader(_Page)


def declare(bridge: Bridge[Service]) -> None:
    """Declare the tool."""
    bridge.tool(
        "Report fine-tuning jobs: status, base model, the name of the finished model, errors. Free.",
        name=FINE_TUNING_STATUS,
        title="Mercury fine-tuning status",
        read_only=True,
        idempotent=True,
        open_world=True,
    )(report)


async def report(args: FineTuningArguments, ctx: Context[Service]) -> FineTuningJobs:
    """Report jobs."""
    service = ctx.state
    provider = service.providers[service.settings.fine_tuning]
    path = f"{_PATH}/{quote(args.job, safe='')}" if args.job else _PATH
    body = await provider.api.fetch(path, provider.keys.pick(), provider.request_seconds)
    try:
        return FineTuningJobs([_read_job(body)] if args.job else _read_page(body).data)
    except UNDECODABLE as problem:
        message = f"The {provider.api.name} reports fine-tuning jobs in a form that cannot be read."
        raise MercuryError("BAD_RESPONSE", message) from problem
