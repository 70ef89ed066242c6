"""Application: the ASGI application of one bridge, and a way to run it.

Routes three paths and turns refusals into responses. Middleware (authentication, metrics) goes around it and
may set `scope["state"]["principal"]` to the name of the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ..bridge import Bridge
from ..dispatch import Dispatcher
from ..limits import Limits
from .endpoint import Endpoint
from .exchange import Exchange, Gone, Outcome, Receive, Refused, Scope, Send, Whole
from .guard import LOOPBACK, Guard
from .legacy import LegacyTransport

log = logging.getLogger("bridgehead.mcp.http")

Route = Callable[[Exchange], Coroutine[Any, Any, Whole | None]]


class Application:
    """One bridge over HTTP."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        guard: Guard,
        *,
        path: str = "/mcp",
        sse_path: str = "/sse",
        messages_path: str = "/messages",
        retry_ms: int = 1000,
    ) -> None:
        self.dispatcher = dispatcher
        self.endpoint = Endpoint(dispatcher, guard, retry_ms=retry_ms)
        self._legacy = LegacyTransport(dispatcher, guard, messages_path)
        self._path = path
        self._routes: dict[str, Route] = {
            path: self.endpoint.serve,
            sse_path: self._legacy.open,
            messages_path: self._legacy.post,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        try:
            response = await self._routes.get(path, _nothing_there)(exchange)
        except Refused as refusal:
            response = refusal.response
        except Gone:
            log.debug("a client hung up before it had sent its request")
            return
        if response is not None:
            await exchange.respond(response)

    def at_once(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> Outcome | None:
        """Serve a request whose body is there; what need not wait comes back as a whole response.

        None leaves a request to the ASGI way. This is an entrance for servers that know it, as ours does:
        most calls are answered without a task of their own.
        """
        if scope["method"] != "POST" or scope["path"] != self._path:
            return None
        try:
            return self.endpoint.at_once(Exchange(scope, receive, send), body)
        except Refused as refusal:
            return refusal.response

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                self.dispatcher.start()
                await send({"type": "lifespan.startup.complete"})
            elif event["type"] == "lifespan.shutdown":
                self.endpoint.close()
                await self.dispatcher.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def end_streams(self) -> None:
        """End what would never end by itself, because the server is going; calls are still answered."""
        self.endpoint.end_streams()
        self._legacy.end_streams()


async def _nothing_there(exchange: Exchange) -> Whole:
    raise Refused(404, f"There is nothing at {exchange.scope['path']}")


def application(
    bridge: Bridge[Any],
    *,
    limits: Limits | None = None,
    allowed_hosts: Iterable[str] = LOOPBACK,
    allowed_origins: Iterable[str] = (),
    state_key: bytes | None = None,
    retry_ms: int = 1000,
) -> Application:
    """Make the ASGI application of a bridge, safe for a browser's neighbourhood by default."""
    dispatcher = Dispatcher(bridge, limits=limits, state_key=state_key)
    return Application(dispatcher, Guard(allowed_hosts, allowed_origins), retry_ms=retry_ms)
