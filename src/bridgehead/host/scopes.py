"""Scopes: how an authorisation server says what of the host a token opens.

`bridgehead` opens everything, `bridgehead:read` what only reads, `bridgehead:aoc` one bridge, and
`bridgehead:aoc:read` what only reads of it; `bridgehead:metrics` opens the metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .grants import EVERYTHING

WORD = "bridgehead"
METRICS = f"{WORD}:metrics"


class Opened(NamedTuple):
    """What scopes open."""

    full: frozenset[str]
    reading: frozenset[str]
    metrics: bool


def opened(scopes: Iterable[str], bridges: Iterable[str]) -> Opened:
    """Read scopes; what is not ours opens nothing."""
    given = set(scopes)
    every = {EVERYTHING: WORD, **{bridge: f"{WORD}:{bridge}" for bridge in bridges}}
    return Opened(
        frozenset(name for name, scope in every.items() if scope in given),
        frozenset(name for name, scope in every.items() if f"{scope}:read" in given),
        METRICS in given,
    )


def supported(bridges: Iterable[str]) -> list[str]:
    """List the scopes that mean something here."""
    words = [WORD, *(f"{WORD}:{bridge}" for bridge in bridges)]
    return [scope for word in words for scope in (word, f"{word}:read")] + [METRICS]
