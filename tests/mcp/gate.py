"""A tool that waits until a test lets it go, and messages as they are on the wire."""

import asyncio
from typing import Any

import msgspec

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments
from bridgehead.mcp.calls.params import META_PREFIX

STATELESS_META = {META_PREFIX + "protocolVersion": "2026-07-28", META_PREFIX + "clientCapabilities": {}}


class Number(Arguments):
    number: int


class Gate:
    """Holds a tool until a test lets it go."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.bridge: Bridge[None] = Bridge("gate", "1")

        @self.bridge.tool("Wait at the gate.")
        async def wait(args: NoArguments, ctx: Context[None]) -> str:
            self.reached.set()
            await self.open.wait()
            return "through"

        @self.bridge.tool("Double a number.")
        def double(args: Number, ctx: Context[None]) -> str:
            return str(2 * args.number)


def encoded(*messages: Any) -> bytes:
    return msgspec.json.encode(messages[0] if len(messages) == 1 else messages)


def make_request(request_id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
