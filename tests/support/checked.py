"""A client whose every received message is judged by the oracle: owns how a test connects to a bridge.

`connect` is `bridgehead.mcp.in_memory.connect` with that client in its place. What a test does with it needs
no further word: an answer is checked as it arrives, and everything else when the connection ends.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bridgehead.mcp import Bridge, Limits, in_memory
from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.in_memory import Answering, InMemoryClient
from bridgehead.mcp.revisions import NEWEST_HANDSHAKE, V2025_11_25, V2026_07_28, Revision
from tests.support import oracle, waiting

STATELESS = V2026_07_28
PATIENCE = waiting.PATIENCE
"""How long a test waits, in seconds, for a message that should come at once."""


class Inbox(list[dict[str, Any]]):
    """The messages that arrived, and a way to wait for more."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        super().__init__(messages)
        self._grew = asyncio.Event()

    def append(self, message: dict[str, Any]) -> None:
        """Take a message in."""
        super().append(message)
        self._grew.set()

    async def of(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until this many messages of a method have come, and return them."""
        async with asyncio.timeout(PATIENCE):
            while len(found := [m for m in self if "method" in m and m["method"] == method]) < count:
                self._grew.clear()
                await self._grew.wait()
        return found


class CheckedClient(InMemoryClient):
    """A memory client that accepts nothing that the official types would not."""

    inbox: Inbox
    """What `sent` is here."""

    async def raw(self, data: bytes) -> Any:
        """Send bytes as they are; return the answer, which was checked."""
        asked = _asked(data)
        before = self._agreed() or V2025_11_25.name
        answer = await super().raw(data)
        for one in answer if isinstance(answer, list) else [answer] if answer is not None else []:
            method, revision = asked.get(one["id"], (None, None))
            if method == "initialize" and "result" in one:
                revision = one["result"]["protocolVersion"]
            oracle.check(revision or before, method, one)
        return answer

    def check_unasked(self) -> None:
        """Check what the server sent of its own accord."""
        for message in self.sent:
            if "method" in message:
                oracle.check(self._agreed() or self.revision.name, None, message)

    def notifications(self, method: str) -> list[Any]:
        """Give the parameters of every notification of a method, in order."""
        return [m.get("params") for m in self.sent if m.get("method") == method and "id" not in m]

    async def answer_to(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request and return its whole answer, be it a result or an error."""
        return await self.start(method, params)[1]

    async def error(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request that fails and return its error."""
        return (await self.answer_to(method, params))["error"]

    async def text(self, tool: str, arguments: dict[str, Any] | None = None, **params: Any) -> str:
        """Call a tool and return the text of its first block."""
        text: str = (await self.call(tool, arguments, **params))["content"][0]["text"]
        return text

    async def all_text(self, tool: str, arguments: dict[str, Any] | None = None) -> str:
        """Call a tool and return all of its text, which every note and next step is in."""
        return "\n".join(block["text"] for block in (await self.call(tool, arguments))["content"])

    def _agreed(self) -> str | None:
        """Name the revision that a handshake agreed on, where there was one."""
        return None if self.connection.client is None else self.connection.client.revision.name


def _asked(data: bytes) -> dict[Any, tuple[str, str | None]]:
    """Find the requests in what is sent: by id, the method and the revision that `_meta` names."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    found: dict[Any, tuple[str, str | None]] = {}
    for item in value if isinstance(value, list) else [value]:
        if (
            isinstance(item, dict)
            and isinstance(item.get("id"), int | str)
            and isinstance(item.get("method"), str)
        ):
            found[item["id"]] = (item["method"], _named_revision(item.get("params")))
    return found


def _named_revision(params: Any) -> str | None:
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = isinstance(meta, dict) and META_PREFIX + "protocolVersion" in meta
    return STATELESS.name if named else None


@asynccontextmanager
async def connect(
    bridge: Bridge[Any],
    *,
    revision: Revision = NEWEST_HANDSHAKE,
    capabilities: dict[str, Any] | None = None,
    answering: Answering | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[CheckedClient]:
    """Open a checked connection; see `bridgehead.mcp.in_memory.connect`."""
    async with in_memory.connect(
        bridge, revision=revision, capabilities=capabilities, answering=answering, limits=limits
    ) as plain:
        client = CheckedClient(plain.dispatcher, revision, plain.capabilities, answering)
        client.connection = plain.connection
        client.inbox = Inbox(plain.sent)
        plain.sent = client.sent = client.inbox
        if not revision.stateless:
            oracle.check(revision.name, "initialize", plain.sent[0])
        yield client
    client.check_unasked()
