"""FastMCP with fastmcp-tasks and one tool that always becomes a task: `python fastmcp_peer.py PORT`."""

import sys

from fastmcp import FastMCP  # type: ignore[import-not-found]
from fastmcp_tasks import TasksExtension  # type: ignore[import-not-found]

server = FastMCP("tasks")
server.add_extension(TasksExtension(url="memory://"))


@server.tool(task=True)  # type: ignore[untyped-decorator]
async def answer() -> str:
    """Answer at once."""
    return "done"


if __name__ == "__main__":
    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[1]),
        stateless_http=True,
        show_banner=False,
        log_level="error",
    )
