"""In-memory client: talks to a bridge without a process or a socket, for tests and commands.

It passes bytes through the same dispatcher as every transport, so a test sees what goes on the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from . import jsonrpc
from .bridge import Bridge
from .calls.params import META_PREFIX
from .connection import Connection
from .coroutines import settle
from .dispatch import Dispatcher
from .errors import ProtocolError
from .limits import Limits
from .revisions import NEWEST_HANDSHAKE, Revision

Answering = Callable[[str, Any], "Any | Awaitable[Any]"]
"""Answers a request of the server: gets method and params, returns the result."""


class InMemoryClient:
    """One client, with a record of everything that the server sent."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        revision: Revision,
        capabilities: dict[str, Any],
        answering: Answering | None = None,
        hearing: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.connection = Connection(dispatcher.limits)
        self.revision = revision
        self.capabilities = capabilities
        self.sent: list[dict[str, Any]] = []
        """Every message that the server sent, in order."""
        self._answering = answering
        self._hearing = hearing
        self._last_id = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._requests: set[asyncio.Task[Any]] = set()
        self._failure: Exception | None = None
        """What `answering` raised: the test's own mistake, which ends the calls that wait."""

    async def send(self, message: bytes) -> None:
        """Receive a message that is not an answer (the `Outlet` of this connection)."""
        decoded = self._record(message)
        if self._hearing is not None:
            self._hearing(decoded)
        if "id" in decoded and "method" in decoded and self._answering is not None:
            task = asyncio.ensure_future(self._answer(self._answering, decoded))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close_stream(self) -> None:
        """Do nothing: there is no stream."""

    async def _answer(self, answering: Answering, question: dict[str, Any]) -> None:
        try:
            result = await settle(answering(question["method"], question.get("params")))
        except Exception as error:  # noqa: BLE001 - raised again by `request`
            self._failure = error
            for request in self._requests:
                request.cancel()
            return
        await self.raw(jsonrpc.result(question["id"], jsonrpc.encode(result)))

    def _record(self, message: bytes) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(message)
        self.sent.append(decoded)
        return decoded

    async def raw(self, data: bytes) -> Any:
        """Send bytes as they are; return the decoded answer, if any."""
        reply = await self.dispatcher.answer_message(jsonrpc.decode(data), self.connection, self)
        for message in self.connection.take_changes():  # before the answer, as on stdio
            await self.send(message)
        return None if reply is None else self._record(reply)

    def start(self, method: str, params: dict[str, Any] | None = None) -> tuple[int, asyncio.Task[Any]]:
        """Send a request without waiting; return its id and a task for the whole answer."""
        self._last_id += 1
        params = dict(params or {})
        if self.revision.stateless:
            params["_meta"] = {
                META_PREFIX + "protocolVersion": self.revision.name,
                META_PREFIX + "clientInfo": {"name": "memory", "version": "1"},
                META_PREFIX + "clientCapabilities": self.capabilities,
                **params.get("_meta", {}),
            }
        body = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        task = asyncio.ensure_future(self.raw(jsonrpc.encode(body)))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return self._last_id, task

    async def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request and return its result; raise an error answer, or what `answering` raised."""
        _, task = self.start(method, params)
        try:
            answer = await task
        except asyncio.CancelledError:
            if self._failure is None:
                raise
            raise self._failure from None
        if "error" in answer:
            error = answer["error"]
            raise ProtocolError(error["code"], error["message"], error.get("data"))
        return answer["result"]

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        await self.raw(jsonrpc.notification(method, params))

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **params: Any) -> Any:
        """Call a tool and return its result."""
        return await self.request("tools/call", {"name": tool, "arguments": arguments or {}, **params})


@asynccontextmanager
async def connect(
    bridge: Bridge[Any],
    *,
    revision: Revision = NEWEST_HANDSHAKE,
    capabilities: dict[str, Any] | None = None,
    answering: Answering | None = None,
    hearing: Callable[[dict[str, Any]], None] | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[InMemoryClient]:
    """Open a connection to a bridge, with a handshake if the revision has one; close it at the end.

    `hearing` gets every message of the server that is not an answer.
    """
    dispatcher = Dispatcher(bridge, limits=limits)
    client = InMemoryClient(dispatcher, revision, capabilities or {}, answering, hearing)
    announcer: asyncio.Task[None] | None = None
    if not revision.stateless:
        hello = {
            "protocolVersion": revision.name,
            "capabilities": client.capabilities,
            "clientInfo": {"name": "memory", "version": "1"},
        }
        await client.request("initialize", hello)
        await client.notify("notifications/initialized")
        if client.connection.listener is not None:
            announcer = asyncio.ensure_future(dispatcher.announce(client.connection.listener, client))
    try:
        yield client
    finally:
        dispatcher.end_streams()
        dispatcher.disconnect(client.connection)
        if announcer is not None:
            await announcer
        await dispatcher.stop()
