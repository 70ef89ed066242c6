"""Serving: what `bridgehead bitburner` does when a client starts it."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.mcp import stdio
from bridgehead.runtime.offering import offered

from .bridge import make_bridge
from .settings import BitburnerSettings


def run(environment: Mapping[str, str]) -> int:
    """Serve the bridge on standard input and output until the client goes.

    The port opens right behind the answer to the client's first message, with which every client begins: no
    tool has to be called for it.
    """
    return stdio.run(offered(make_bridge(BitburnerSettings(environment)), environment))
