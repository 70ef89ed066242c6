"""Our server with one tool that always becomes a task: `python ours.py PORT [FOLDER]`.

Without a folder its tasks are in memory, with one in a SQLite file there.
"""

import sys
from pathlib import Path

from bridgehead.mcp import Bridge, Context, Limits, NoArguments
from bridgehead.mcp.http import application, run
from bridgehead.runtime.tasks.sqlite import SqliteTaskStore

bridge: Bridge[None] = Bridge("tasks", "1")


@bridge.tool("Answer.", task="required", task_grace_seconds=0)
async def answer(_args: NoArguments, _ctx: Context[None]) -> str:
    """Answer at once: what is measured is the task, not its work."""
    return "done"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        bridge.task_store = lambda: SqliteTaskStore(lambda: Path(sys.argv[2]))
    limits = Limits(tasks=10**6, tasks_per_caller=10**6, task_seconds=60.0)
    run(application(bridge, limits=limits), port=int(sys.argv[1]))
