"""Bridges: the ones of this distribution, by name, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridgehead.host.registry import NAMES, installed
from bridgehead.mcp import Bridge
from bridgehead.runtime.hosting import Hosted
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.offering import offered

__all__ = ["NAMES", "bridge", "hosted"]


def hosted(name: str, environment: Mapping[str, str]) -> Hosted:
    """Make a bridge; raises SettingError where the environment says something wrong."""
    return installed((name,))[name](environment, Metrics())


def bridge(name: str, environment: Mapping[str, str]) -> Bridge[Any]:
    """Make a bridge with those of its tools that the environment lets be offered, as a client gets it."""
    return offered(hosted(name, environment).bridge, environment)
