"""Application: the HTTP routes and the life cycle of one bridge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..bridge import Bridge
from ..calls.multi_round import Keys
from ..dispatch import Dispatcher
from ..limits import Limits
from .callers import Callers
from .endpoint import Endpoint
from .guard import LOOPBACK, Guard
from .legacy_sse import LegacyTransport
from .message import Handled, Request
from .rejection import Rejection


class Application:
    """Streamable HTTP at `/mcp`, and the older HTTP+SSE transport at `/sse` and `/messages`."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        guard: Guard,
        *,
        prefix: str = "",
        retry_ms: int = 1000,
        session_prefix: str = "",
        callers: Callers | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        callers = callers or Callers(dispatcher.limits)
        self.endpoint = Endpoint(dispatcher, guard, callers, retry_ms=retry_ms, session_prefix=session_prefix)
        self._legacy = LegacyTransport(dispatcher, guard, callers, f"{prefix}/messages", session_prefix)
        self._routes: dict[str, Callable[[Request], Handled]] = {
            f"{prefix}/mcp": self.endpoint,
            f"{prefix}/sse": self._legacy.open,
            f"{prefix}/messages": self._legacy.post,
        }

    def __call__(self, request: Request) -> Handled:
        """Answer one request."""
        route = self._routes.get(request.path)
        if route is None:
            return Rejection(404, f"There is nothing at {request.path}").response
        try:
            return route(request)
        except Rejection as rejection:
            return rejection.response

    async def start(self) -> None:
        """Start the bridge's lifespan without waiting for it."""
        self.dispatcher.start()

    def end_streams(self) -> None:
        """End open streams, because the server is stopping; calls are still answered."""
        self.endpoint.end_streams()
        self._legacy.end_streams()

    async def stop(self) -> None:
        """End every session and the bridge's lifespan."""
        self.endpoint.close()
        await self.dispatcher.stop()


def application(
    bridge: Bridge[Any],
    *,
    limits: Limits | None = None,
    allowed_hosts: Iterable[str] = LOOPBACK,
    allowed_origins: Iterable[str] = (),
    state_key: Keys | None = None,
    retry_ms: int = 1000,
) -> Application:
    """Make the application of a bridge; by default only loopback names are accepted as Host and Origin."""
    dispatcher = Dispatcher(bridge, limits=limits, state_key=state_key)
    return Application(dispatcher, Guard(allowed_hosts, allowed_origins), retry_ms=retry_ms)
