"""The echo server on FastMCP, over stdio or HTTP."""

import logging
import sys
from typing import Annotated

from fastmcp import FastMCP  # type: ignore[import-not-found]
from pydantic import Field

server: FastMCP = FastMCP("echo", version="1.0.0")


@server.tool(description="Says back what it is told.", output_schema=None)  # type: ignore[untyped-decorator]
async def echo(text: Annotated[str, Field(description="What to say back")]) -> str:
    """Answer with the text that came in."""
    return text


def serve_http(port: int) -> None:
    """Serve with uvicorn on loopback, answering in plain JSON."""
    import uvicorn

    uvicorn.run(
        server.http_app(path="/mcp", json_response=True),
        host="127.0.0.1",
        port=port,
        http="httptools",
        loop="uvloop",
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    for name in ("mcp", "fastmcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if sys.argv[1] == "stdio":
        server.run("stdio", show_banner=False)
    else:
        serve_http(int(sys.argv[2]))
