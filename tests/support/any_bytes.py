"""Any bytes: a connection of any era to a bridge with everything in it, for tests that send it anything."""

import asyncio
from typing import Any

import msgspec

from bridgehead.mcp import Bridge, jsonrpc
from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.connection import Connection
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.limits import Limits
from bridgehead.mcp.requests import METHODS
from bridgehead.mcp.revisions import HANDSHAKE
from tests.support import oracle
from tests.support.asking import make_bridge
from tests.support.waiting import PATIENCE

__all__ = ["ERAS", "META", "METHODS", "VALID", "Session", "is_answer"]

CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
ERAS = [*HANDSHAKE, "2026-07-28", None]
"""The revisions, and None for a connection that was never initialized."""

VALID: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "name": "form",
    "arguments": {"subject": "you"},
    "uri": "asking://roots",
    "level": "info",
    "cursor": "p0",
    "ref": {"type": "ref/prompt", "name": "asking_prompt"},
    "argument": {"name": "a", "value": "b"},
    "context": {"arguments": {}},
    "inputResponses": {"form": {"action": "accept", "content": {"name": "Ada"}}},
    "requestState": "AAAA",
}
META = {
    META_PREFIX + "protocolVersion": "2026-07-28",
    META_PREFIX + "clientCapabilities": CAPABILITIES,
    META_PREFIX + "logLevel": "debug",
    "progressToken": 1,
}


class Silence:
    """An outlet that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    async def send(self, message: bytes) -> None:
        self.sent.append(msgspec.json.decode(message))

    async def close_stream(self) -> None:
        """Nothing to let go of."""


class Session:
    """One connection of an era, to a bridge with everything in it."""

    def __init__(self, era: str | None, bridge: Bridge[None] | None = None) -> None:
        self.dispatcher = Dispatcher(bridge or make_bridge(), limits=Limits(ask_seconds=0.0))
        self.connection = Connection(self.dispatcher.limits)
        self.outlet = Silence()
        if era in HANDSHAKE:
            hello = {"protocolVersion": era, "capabilities": CAPABILITIES}
            body = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}
            assert isinstance(
                self.dispatcher.handle_message(
                    jsonrpc.decode(msgspec.json.encode(body)), self.connection, self.outlet
                ),
                bytes,
            )

    async def receive(self, data: bytes) -> Any:
        reply = self.dispatcher.handle_message(jsonrpc.decode(data), self.connection, self.outlet)
        if reply is not None and not isinstance(reply, bytes):
            task = asyncio.ensure_future(reply)
            async with asyncio.timeout(PATIENCE):
                while not task.done():  # a listen stream lasts until the server ends it
                    self.dispatcher.end_streams()
                    await asyncio.wait({task}, timeout=0.001)
            reply = task.result()
        return None if reply is None else msgspec.json.decode(reply)

    def is_at_rest(self) -> bool:
        left = (self.connection.in_flight, self.connection.asked, self.dispatcher.streams)
        return not any(left) and self.connection.parked == 0


def is_answer(message: Any) -> bool:
    """Tell whether this is one JSON-RPC answer, or an array of them."""
    if isinstance(message, list):
        return bool(message) and all(is_answer(one) for one in message)
    assert message["jsonrpc"] == "2.0"
    if "error" in message:
        oracle.check("2025-11-25", None, message)
        return True
    return isinstance(message["result"], dict) and isinstance(message["id"], int | str)
