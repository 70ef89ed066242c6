"""One replica, `python -m tests.chaos.replica`: aoc, mercury, and a bridge whose calls become tasks."""

import asyncio
import os
import secrets
import sys
from typing import Any

from bridgehead.host.command import main
from bridgehead.host.registry import installed
from bridgehead.mcp import Arguments, Bridge, Context
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import FarSide, Manifest
from bridgehead.runtime.settings import Settings


class Chore(Arguments):
    """What to do."""

    name: str


def make_chores(_settings: Settings, _metrics: Any) -> Bridge[None]:
    """Make a bridge whose one tool takes a while, and never answers twice with the same words."""
    bridge: Bridge[None] = Bridge("chores", "1")

    @bridge.tool("Do a chore.", name="chore", task="optional", task_grace_seconds=0.01)
    async def chore(args: Chore, ctx: Context[None]) -> str:
        await asyncio.sleep(0.2)
        return f"{args.name} {secrets.token_hex(8)}"

    return bridge


CHORES = Manifest(
    name="chores",
    title="Chores",
    summary="chores",
    description="Chores.",
    settings=Settings,
    make=make_chores,
    far_side=lambda _state: FarSide(is_up=True, detail="It is here."),
)

if __name__ == "__main__":
    try:
        raise SystemExit(
            main(sys.argv[1:], dict(os.environ), lambda _: installed(("aoc", "mercury")) | {"chores": CHORES})
        )
    except BridgeError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
