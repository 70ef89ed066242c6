"""Hosted: the aoc bridge as a host and `doctor` see it."""

# ruff: noqa: PTH112 - one way to write a path in this package

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from bridgehead.runtime.hosting import FarSide, Hosted
from bridgehead.runtime.metrics import Metrics

from .bridge import make_bridge
from .event import Event
from .settings import AocSettings


def hosted(environment: Mapping[str, str], metrics: Metrics) -> Hosted:
    """Make the bridge for a host."""
    settings = AocSettings(environment)
    return Hosted(make_bridge(settings), settings, metrics, far_side)


def far_side(event: Event | Any) -> FarSide:
    """Tell whether there are puzzles to read, or records."""
    if event is None:
        return FarSide(is_there=False, says="The files have not been looked at yet.")
    places = event.folders
    if not any(os.path.isdir(folder) for folder in (places.instructions, places.speeds)):
        return FarSide(is_there=False, says=f"There is neither {places.instructions} nor {places.speeds}.")
    return FarSide(is_there=True, says=f"{len(event.days())} days in {places.instructions}.")
