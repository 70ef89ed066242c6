"""Bridges: the ones of this distribution, by name, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.host.registry import NAMES, installed
from bridgehead.runtime.hosting import Hosted
from bridgehead.runtime.metrics import Metrics

__all__ = ["NAMES", "hosted"]


def hosted(name: str, environment: Mapping[str, str]) -> Hosted:
    """Make a bridge; raises SettingError where the environment says something wrong."""
    return installed((name,))[name](environment, Metrics())
