"""The echo server on the official Python SDK's MCPServer, over stdio or HTTP."""

import logging
import sys
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

server = MCPServer("echo", version="1.0.0", log_level="WARNING")


@server.tool(description="Says back what it is told.", structured_output=False)
async def echo(text: Annotated[str, Field(description="What to say back")]) -> str:
    """Answer with the text that came in."""
    return text


def serve_http(port: int) -> None:
    """Serve with uvicorn on loopback, answering in plain JSON."""
    import uvicorn

    uvicorn.run(
        server.streamable_http_app(json_response=True),
        host="127.0.0.1",
        port=port,
        http="httptools",
        loop="uvloop",
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    logging.getLogger("mcp").setLevel(logging.WARNING)
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        serve_http(int(sys.argv[2]))
