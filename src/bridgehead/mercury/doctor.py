"""Doctor: check the settings, stores, key, API and model of the mercury bridge, with real requests."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.runtime import directories, logs
from bridgehead.runtime.findings import Finding, folder_finding, settings_finding
from bridgehead.runtime.stores import migrations

from .calling.keys import KEY_PAGE
from .calling.service import Service
from .errors import MercuryError
from .settings import MercurySettings

SHARED = "rate limits"
"""State that replicas share through Redis."""
APART = (
    "cached answers, deduplication, circuit breakers, cooling keys, and the rate limits of clients without a "
    "token"
)
"""State that each replica keeps for itself."""


async def examine(environment: Mapping[str, str], *, offline: bool = False) -> list[Finding]:
    """Run all checks; with `offline`, only those that need neither the API nor a provider."""
    settings = MercurySettings(environment)
    with directories.looking(settings, "mercury") as own:
        return await _examine(settings, Service(own), environment, offline=offline)


async def _examine(
    settings: MercurySettings, service: Service, environment: Mapping[str, str], *, offline: bool
) -> list[Finding]:
    from bridgehead.runtime.stores.redis_check import examine_redis  # lazy: Redis, 90 ms

    from .calling.postgres_usage import read_schema  # lazy: PostgreSQL, 14 ms

    try:
        findings = [settings_finding(settings, environment)]
        findings.append(folder_finding("state", directories.state_folder(settings, "mercury")))
        findings.append(await migrations.examine(settings.database_url, read_schema, "usage and budgets"))
        findings.append(await examine_redis(settings, SHARED, APART))
        if service.keys.has_placeholder:
            advice = f"Set MERCURY_API_KEY to a key of your own{KEY_PAGE}."
            findings.append(Finding("key", "wrong", "it is a placeholder from an example, not a key", advice))
        elif service.keys.count:
            findings.append(Finding("key", "right", f"{service.keys.count} found, in a valid form"))
            if not offline:
                findings += [*await _check_api(service), *await _check_providers(service)]
        else:
            others = [name for name, provider in service.providers.items() if provider.keys.count]
            try:
                service.keys.pick()
            except MercuryError as error:  # says whether a setting or a file is missing
                problem = f"{error.message} Calls go to {', '.join(others)}." if others else error.message
                advice = f"{error.next_step} Without a key, run `bridgehead mercury simulate`."
                findings.append(Finding("key", "note" if others else "wrong", problem, advice))
            if others and not offline:
                findings += await _check_providers(service)
    finally:
        await service.close()
    # Errors may quote an address or an answer with a key in it.
    return [
        Finding(finding.what, finding.verdict, logs.scrubbed(finding.text), logs.scrubbed(finding.advice))
        for finding in findings
    ]


async def _check_api(service: Service) -> list[Finding]:
    """Fetch the list of models, which is free, and look for the configured one."""
    settings = service.settings
    findings = []
    started = service.clock.monotonic()
    try:
        models = await service.catalogue.fetch()
    except MercuryError as error:
        findings.append(Finding(f"API at {settings.api_url}", "wrong", str(error)))
    else:
        took = (service.clock.monotonic() - started) * 1000
        text = f"the key is accepted; {len(models)} models in {took:.0f} ms"
        findings.append(Finding(f"API at {settings.api_url}", "right", text))
        names = [model.id for model in models]
        if settings.model in names:
            findings.append(Finding("model", "right", settings.model))
        else:
            problem = f"{settings.model} is not among {', '.join(names)}"
            findings.append(Finding("model", "wrong", problem, "Set MERCURY_MODEL."))
    return findings


async def _check_providers(service: Service) -> list[Finding]:
    """Fetch the list of models from each provider of the routes file."""
    findings = []
    for name, provider in service.providers.items():
        if provider is service.mercury:
            continue
        what = f"provider {name} at {provider.url}"
        try:
            models = await provider.catalogue.fetch()
        except MercuryError as error:
            # Not every compatible server has a list of models; it may still complete.
            findings.append(Finding(what, "note" if error.code == "NOT_FOUND" else "wrong", str(error)))
        else:
            findings.append(Finding(what, "right", f"{len(models)} models"))
    return findings
