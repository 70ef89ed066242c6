"""The same tools on FastMCP, with a bearer token: `python fastmcp_peer.py PORT TOKEN`."""

import asyncio
import logging
import sys
from typing import Annotated

import uvicorn
from fastmcp import FastMCP  # type: ignore[import-not-found]
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier  # type: ignore[import-not-found]
from pydantic import BaseModel, Field


class Sum(BaseModel):
    """What came out."""

    sum: int


def serve(port: int, token: str) -> None:
    """Serve with uvicorn on loopback, answering in plain JSON."""
    verifier = StaticTokenVerifier(tokens={token: {"client_id": "bench", "scopes": []}})
    server: FastMCP = FastMCP("bench", version="1.0.0", auth=verifier)

    @server.tool(description="Says back what it is told.", output_schema=None)  # type: ignore[untyped-decorator]
    async def echo(text: Annotated[str, Field(description="What to say back")]) -> str:
        return text

    @server.tool(description="Adds two numbers up.")  # type: ignore[untyped-decorator]
    async def add(
        a: Annotated[int, Field(description="One number")], b: Annotated[int, Field(description="Another")]
    ) -> Sum:
        return Sum(sum=a + b)

    @server.tool(description="Says it after a turn of the loop.", output_schema=None)  # type: ignore[untyped-decorator]
    async def later(text: Annotated[str, Field(description="What to say back")]) -> str:
        await asyncio.sleep(0)
        return text

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
    serve(int(sys.argv[1]), sys.argv[2])
