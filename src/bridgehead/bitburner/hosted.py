"""Hosted: the bitburner bridge as a host and `doctor` see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridgehead.runtime.hosting import FarSide, Hosted
from bridgehead.runtime.metrics import Metrics

from .bridge import make_bridge
from .session import Session
from .settings import BitburnerSettings

ALONE = "A game connects to one process only, and the others would have to ask that one."


def hosted(environment: Mapping[str, str], metrics: Metrics) -> Hosted:
    """Make the bridge for a host."""
    settings = BitburnerSettings(environment)
    return Hosted(make_bridge(settings, metrics=metrics), settings, metrics, far_side, alone=ALONE)


def far_side(session: Session | Any) -> FarSide:
    """Tell whether a game is connected."""
    if session is None:
        return FarSide(is_there=False, says="The port is not open yet.")
    if session.board.link is None:
        return FarSide(is_there=False, says=str(session.board.make_not_connected()))
    return FarSide(is_there=True, says=f"A game is connected, from {session.board.game}.")
