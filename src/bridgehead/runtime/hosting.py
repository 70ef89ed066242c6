"""Hosting: what a bridge shows of itself to whoever serves it, and to `doctor`.

Each bridge has `hosted.py` with `hosted(environment, metrics) -> Hosted`. A host knows no more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from bridgehead.mcp import Bridge

from .metrics import Metrics
from .settings import Settings


class FarSide(Struct, frozen=True):
    """Whether what a bridge crosses to is there right now, and a sentence about it for a person."""

    is_there: bool
    says: str


class Hosted(Struct, frozen=True):
    """A bridge with everything that a host asks of it."""

    bridge: Bridge[Any]
    settings: Settings
    metrics: Metrics
    far_side: Callable[[Any], FarSide]
    """Takes what the bridge's lifespan holds open; None while it has not begun."""
    alone: str = ""
    """Why only one process can serve it; nothing where several can."""


Factory = Callable[[Mapping[str, str], Metrics], Hosted]
"""Makes a bridge from an environment; raises SettingError where that says something wrong."""
