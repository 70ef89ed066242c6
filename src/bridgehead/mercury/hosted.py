"""Hosted: the mercury bridge as a host and `doctor` see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bridgehead.runtime.hosting import FarSide, Hosted
from bridgehead.runtime.metrics import Metrics

from .bridge import make
from .calling.service import Service
from .settings import MercurySettings

_USED = {
    "calls": "Calls that were answered, from the API or from the cache.",
    "errors": "Calls that failed.",
    "cache_hits": "Calls that were answered from the cache.",
    "prompt_tokens": "Tokens that were sent.",
    "completion_tokens": "Tokens that came back.",
    "cost_usd": "What it cost, in US dollars, by the live price list.",
}


def hosted(environment: Mapping[str, str], metrics: Metrics) -> Hosted:
    """Make the bridge for a host."""
    settings = MercurySettings(environment)
    usage = _Usage(metrics)
    return Hosted(make(settings, on_open=usage.take), settings, metrics, far_side)


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


def far_side(service: Service | Any) -> FarSide:
    """Tell whether there is a key, and whether the API answered when it was last asked."""
    if service is None:
        return FarSide(is_there=False, says="The API has not been spoken to yet.")
    if not service.keys.count:
        return FarSide(is_there=False, says="There is no API key: set MERCURY_API_KEY.")
    if service.breaker.is_open:
        return FarSide(is_there=False, says="The API keeps failing and is left alone for a moment.")
    return FarSide(is_there=True, says=f"{service.keys.count} key(s) for {service.settings.api_url}.")
