"""Hosted: the mercury bridge as a host and `doctor` see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridgehead.runtime.hosting import FarSide, Hosted
from bridgehead.runtime.metrics import Metrics

from .bridge import make
from .service import Service
from .settings import MercurySettings


def hosted(environment: Mapping[str, str], metrics: Metrics) -> Hosted:
    """Make the bridge for a host."""
    settings = MercurySettings(environment)
    return Hosted(make(settings), settings, metrics, far_side)


def far_side(service: Service | Any) -> FarSide:
    """Tell whether there is a key, and whether the API answered when it was last asked."""
    if service is None:
        return FarSide(is_there=False, says="The API has not been spoken to yet.")
    if not service.keys.count:
        return FarSide(is_there=False, says="There is no API key: set MERCURY_API_KEY.")
    if service.breaker.is_open:
        return FarSide(is_there=False, says="The API keeps failing and is left alone for a moment.")
    return FarSide(is_there=True, says=f"{service.keys.count} key(s) for {service.settings.api_url}.")
