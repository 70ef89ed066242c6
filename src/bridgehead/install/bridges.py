"""Bridges: which there are to install, and what can be set for each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridgehead.runtime.settings import Settings

_SETTINGS = {"bitburner": "BitburnerSettings", "aoc": "AocSettings", "mercury": "MercurySettings"}
NAMES = tuple(_SETTINGS)


def settings_of(bridge: str) -> type[Settings]:
    """Return the declaration of a bridge's settings, loaded when it is asked for."""
    found: type[Settings] = getattr(import_module(f"bridgehead.{bridge}.settings"), _SETTINGS[bridge])
    return found
