"""Doctor: checks for real what the mercury bridge needs, and says what to do about what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from msgspec import Struct
from rich.console import Console

from bridgehead.runtime import logs, places
from bridgehead.runtime.errors import BridgeError

from .errors import MercuryError
from .opening import opened
from .service import Service
from .settings import MercurySettings

_MARKS = {True: "[green]✓[/]", False: "[red]✗[/]"}


class Finding(Struct, frozen=True):
    """One thing that was looked at."""

    what: str
    is_well: bool
    detail: str


def examine(environment: Mapping[str, str], *, offline: bool) -> int:
    """Look at everything, print what was found, and return 0 only if all is well."""
    settings = MercurySettings(environment)
    console = Console(highlight=False, soft_wrap=True)
    is_well = asyncio.run(_print_findings(settings, console, offline=offline))
    console.print("All is well." if is_well else "Something needs attention, see above.")
    return 0 if is_well else 1


async def _print_findings(settings: MercurySettings, console: Console, *, offline: bool) -> bool:
    service = opened(settings)
    is_well = True
    try:
        async for finding in _findings(service, offline=offline):
            console.print(f"{_MARKS[finding.is_well]} {finding.what}: ", end="")
            console.print(logs.scrubbed(finding.detail), markup=False)
            is_well = is_well and finding.is_well
    finally:
        await service.api.close()
    return is_well


async def _findings(service: Service, *, offline: bool) -> AsyncIterator[Finding]:
    settings = service.settings
    given = ", ".join(sorted(settings.given)) or "none, all have their defaults"
    yield Finding("settings", is_well=True, detail=f"set: {given}")
    yield _state(settings)
    if not service.keys.count:
        yield Finding("key", is_well=False, detail=_missing(service))
        return
    yield Finding("key", is_well=True, detail=f"{service.keys.count} found, of the right form")
    if not offline:
        async for finding in _asked(service):
            yield finding


def _state(settings: MercurySettings) -> Finding:
    try:
        folder = places.state(settings, "mercury")
    except BridgeError as error:
        return Finding("state", is_well=False, detail=str(error))
    return Finding("state", is_well=True, detail=f"kept in {folder}")


def _missing(service: Service) -> str:
    try:
        service.keys.pick()
    except MercuryError as error:
        return str(error)
    return ""


async def _asked(service: Service) -> AsyncIterator[Finding]:
    """Ask the API with each key."""
    settings = service.settings
    begun = service.clock.monotonic()
    try:
        models = await service.catalogue.models()
    except MercuryError as error:
        yield Finding(f"API at {settings.api_url}", is_well=False, detail=str(error))
        return
    took = (service.clock.monotonic() - begun) * 1000
    yield Finding(
        f"API at {settings.api_url}",
        is_well=True,
        detail=f"the key is accepted; {len(models)} models in {took:.0f} ms",
    )
    names = [model.id for model in models]
    known = settings.model in names
    detail = (
        settings.model if known else f"{settings.model} is not among {', '.join(names)}: set MERCURY_MODEL"
    )
    yield Finding("model", is_well=known, detail=detail)
