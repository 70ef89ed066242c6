"""Serves the aoc bridge to one client over standard input and output."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.mcp import stdio
from bridgehead.runtime.offering import offered

from .bridge import make_bridge
from .settings import AocSettings


def run(environment: Mapping[str, str]) -> int:
    """Serve until the client goes; a bad setting raises before anything is served."""
    return stdio.run(offered(make_bridge(AocSettings(environment)), environment))
