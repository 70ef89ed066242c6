"""A process that runs one task over stdio and never ends it: `python -m tests.support.task_worker FOLDER`."""

import asyncio
import sys
from pathlib import Path

from bridgehead.mcp import Bridge, Context, NoArguments, stdio
from bridgehead.runtime.tasks.sqlite import SqliteTaskStore


def make_bridge(folder: Path) -> Bridge[None]:
    """Make a bridge whose tasks are kept in a folder."""
    bridge: Bridge[None] = Bridge("worker", "1")
    bridge.task_store = lambda: SqliteTaskStore(lambda: folder)

    @bridge.tool("Work until the end of the process.", task="required", task_grace_seconds=0)
    async def work(_args: NoArguments, ctx: Context[None]) -> str:
        await asyncio.Event().wait()
        return "never"

    return bridge


if __name__ == "__main__":
    raise SystemExit(stdio.run(make_bridge(Path(sys.argv[1]))))
