"""The chat tools on the official Python SDK's low-level server with httpx2, over stdio: URL, then the mode.

Written the way one writes it with these libraries, as fast as they allow: one client with a pool, no model of
the answer but the decoded JSON. The stream reports progress for each delta or, in the mode "coalesced", what
has come within 50 ms, as the bridge does.
"""

import json
import sys
import time
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

URL, MODE = sys.argv[1], sys.argv[2]
HEADERS = {"Authorization": "Bearer sk_benchmark"}
SCHEMA = {
    "type": "object",
    "properties": {
        "model": {"type": "string"},
        "messages": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["model", "messages"],
}
COALESCED_SECONDS = 0.05

client = httpx2.AsyncClient(headers=HEADERS, timeout=60, limits=httpx2.Limits(max_connections=256))


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    names = ("mercury_chat_completion", "mercury_chat_stream")
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=SCHEMA) for name in names])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    work = complete if params.name == "mercury_chat_completion" else stream
    text, metadata = await work(ctx, params.arguments or {})
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content={"content": text, "metadata": metadata},
    )


async def complete(ctx: Any, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    response = await client.post(f"{URL}/chat/completions", json=arguments)
    response.raise_for_status()
    answer = response.json()
    choice = answer["choices"][0]
    metadata = {
        "model": answer["model"],
        "usage": answer["usage"],
        "finish_reason": choice["finish_reason"],
    }
    return choice["message"]["content"], metadata


async def stream(ctx: Any, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    body = {**arguments, "stream": True, "stream_options": {"include_usage": True}}
    pieces: list[str] = []
    metadata: dict[str, Any] = {}
    told, last = 0, 0.0
    async with client.stream("POST", f"{URL}/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            chunk = json.loads(line[6:])
            if chunk.get("usage"):
                metadata |= {"model": chunk["model"], "usage": chunk["usage"]}
            for choice in chunk["choices"]:
                if choice["finish_reason"]:
                    metadata["finish_reason"] = choice["finish_reason"]
                if choice["delta"].get("content"):
                    pieces.append(choice["delta"]["content"])
            if len(pieces) > told and (MODE != "coalesced" or time.monotonic() - last > COALESCED_SECONDS):
                await ctx.session.report_progress(len(pieces), None, "".join(pieces[told:]))
                told, last = len(pieces), time.monotonic()
    return "".join(pieces), metadata


async def main() -> None:
    server: Server[Any] = Server("mercury", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


anyio.run(main)
