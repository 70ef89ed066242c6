"""Application: one bridge over HTTP: which path leads where, and its life."""

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
    """Streamable HTTP at one path, and beside it the older HTTP+SSE transport at two."""

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
        try:
            return self._routes.get(request.path, _nothing_there)(request)
        except Rejection as rejection:
            return rejection.response

    async def start(self) -> None:
        """Begin to hold open what the bridge needs, without waiting for it."""
        self.dispatcher.start()

    def end_streams(self) -> None:
        """End what would never end by itself, because the server is going; calls are still answered."""
        self.endpoint.end_streams()
        self._legacy.end_streams()

    async def stop(self) -> None:
        """End every session, and let go of what the bridge holds open."""
        self.endpoint.close()
        await self.dispatcher.stop()


def _nothing_there(request: Request) -> Handled:
    raise Rejection(404, f"There is nothing at {request.path}")


def application(
    bridge: Bridge[Any],
    *,
    limits: Limits | None = None,
    allowed_hosts: Iterable[str] = LOOPBACK,
    allowed_origins: Iterable[str] = (),
    state_key: Keys | None = None,
    retry_ms: int = 1000,
) -> Application:
    """Make the application of a bridge, safe for a browser's neighbourhood by default."""
    dispatcher = Dispatcher(bridge, limits=limits, state_key=state_key)
    return Application(dispatcher, Guard(allowed_hosts, allowed_origins), retry_ms=retry_ms)
