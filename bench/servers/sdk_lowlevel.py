"""The echo server on the official Python SDK's low-level server, over stdio or HTTP."""

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server

ECHO = types.Tool(
    name="echo",
    description="Says back what it is told.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to say back"}},
        "required": ["text"],
    },
)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    """Name the one tool."""
    return types.ListToolsResult(tools=[ECHO])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Answer with the text that came in."""
    text = (params.arguments or {})["text"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


server: Server[Any] = Server("echo", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio() -> None:
    """Serve one client over stdin and stdout."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


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
    if sys.argv[1] == "stdio":
        anyio.run(serve_stdio)
    else:
        serve_http(int(sys.argv[2]))
