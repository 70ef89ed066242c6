"""Watching: looks for changed puzzle files while the bridge serves, and tells the clients that listen.

It asks the file system again and again, which works on every disk and costs a fraction of a millisecond.
"""

from __future__ import annotations

from typing import Any

from bridgehead.mcp import Bridge
from bridgehead.mcp.lazy_imports import asyncio

from . import instructions, layout

EVERY_SECONDS = 1.0


async def watch(bridge: Bridge[Any], folder: str, every: float) -> None:
    """Announce every change of the puzzles in a folder, until cancelled."""
    before = instructions.available(folder)
    while True:
        await asyncio.sleep(every)
        now = instructions.available(folder)
        if now == before:
            continue
        for day in sorted(before.keys() | now.keys()):
            if before.get(day) != now.get(day):
                bridge.changed.resource(layout.day_uri(day))
        if before.keys() != now.keys():
            bridge.changed.resources()
        before = now
