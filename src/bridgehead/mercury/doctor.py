"""Doctor: checks for real what the mercury bridge needs, and says what to do about what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from bridgehead.runtime import directories, logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, settings_finding

from .calling.service import Service
from .errors import MercuryError
from .settings import MercurySettings

if TYPE_CHECKING:
    from .calling.provider import Provider


SHARED = "rate limits, cached answers, deduplication, circuit breakers and cooling keys"
"""What replicas agree on through Redis."""
APART = "the rate limits of clients without a token"
"""What each replica has for itself."""


async def examine(environment: Mapping[str, str], *, offline: bool = False) -> list[Finding]:
    """Look at everything; without the network only at what is on this machine."""
    service = Service(MercurySettings(environment))
    found = [settings_finding(service.settings, environment)]
    try:
        found += [finding async for finding in _findings(service, offline=offline)]
        return [_clean(finding) for finding in found]
    finally:
        await service.close()


def _clean(finding: Finding) -> Finding:
    """Take keys out of what is shown, wherever they came from."""
    return Finding(finding.what, finding.verdict, logs.scrubbed(finding.text), logs.scrubbed(finding.advice))


async def _findings(service: Service, *, offline: bool) -> AsyncIterator[Finding]:
    yield _state(service.settings)
    yield await _database(service.settings)
    yield await _redis(service.settings)
    if not service.keys.count:
        yield Finding("key", "wrong", _missing(service))
        return
    yield Finding("key", "right", f"{service.keys.count} found, in a valid form")
    if not offline:
        async for finding in _ask_api(service):
            yield finding
        for name, provider in service.providers.items():
            if provider is not service.mercury:
                yield await _ask_provider(name, provider)


async def _ask_provider(name: str, provider: Provider) -> Finding:
    """Ask a provider of the routes file for its models; not every server has a list of them."""
    what = f"provider {name} at {provider.url}"
    try:
        models = await provider.catalogue.fetch()
    except MercuryError as error:
        return Finding(what, "note" if error.code == "NOT_FOUND" else "wrong", str(error))
    return Finding(what, "right", f"{len(models)} models")


async def _database(settings: MercurySettings) -> Finding:
    from bridgehead.runtime.stores import migrations

    from .calling.postgres_usage import read_schema

    return await migrations.examine(settings.database_url, read_schema, "usage and budgets")


async def _redis(settings: MercurySettings) -> Finding:
    from bridgehead.runtime.stores.redis_check import examine_redis

    return await examine_redis(settings, SHARED, APART)


def _state(settings: MercurySettings) -> Finding:
    try:
        folder = directories.open_state(settings, "mercury")
    except BridgeError as error:
        return Finding("state", "wrong", error.message, error.next_step)
    return Finding("state", "right", f"kept in {folder}")


def _missing(service: Service) -> str:
    try:
        service.keys.pick()
    except MercuryError as error:
        return str(error)
    return ""


async def _ask_api(service: Service) -> AsyncIterator[Finding]:
    """Ask the API for its models."""
    settings = service.settings
    started = service.clock.monotonic()
    try:
        models = await service.catalogue.fetch()
    except MercuryError as error:
        yield Finding(f"API at {settings.api_url}", "wrong", str(error))
        return
    took = (service.clock.monotonic() - started) * 1000
    text = f"the key is accepted; {len(models)} models in {took:.0f} ms"
    yield Finding(f"API at {settings.api_url}", "right", text)
    names = [model.id for model in models]
    if settings.model in names:
        yield Finding("model", "right", settings.model)
    else:
        known = ", ".join(names)
        yield Finding("model", "wrong", f"{settings.model} is not among {known}", "Set MERCURY_MODEL.")
