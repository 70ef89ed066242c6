"""Application: the HTTP routes and the life cycle of one bridge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from ..bridge import Bridge
from ..calls.multi_round import Keys
from ..dispatch import Dispatcher
from ..limits import Limits
from . import authentication
from .authentication import Authenticate, Headers, Principal, Tokens
from .endpoint import Endpoint
from .guard import LOOPBACK, Callers, Guard
from .legacy_sse import LegacyTransport
from .message import Handled, Request, Response, ResponseStream
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
        authenticate: Authenticate | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self._authenticate = authenticate
        callers = callers or Callers(dispatcher.limits)
        self.endpoint = Endpoint(dispatcher, guard, callers, retry_ms=retry_ms, session_prefix=session_prefix)
        self._legacy = LegacyTransport(dispatcher, guard, callers, f"{prefix}/messages", session_prefix)
        self._routes: dict[str, Callable[[Request], Handled]] = {
            f"{prefix}/mcp": self.endpoint,
            f"{prefix}/sse": self._legacy.open,
            f"{prefix}/messages": self._legacy.post,
        }

    def __call__(self, request: Request) -> Handled:
        """Answer one request, if its caller may call."""
        if self._authenticate is None:
            return self._answer(request)
        # Before anything else: whoever is not known learns nothing, not even which paths there are.
        principal = self._authenticate(Headers(request.headers))
        if isinstance(principal, Awaitable):
            return self._wait(request, principal)
        return self._admit(request, principal)

    @property
    def needs_authentication(self) -> bool:
        """Whether only known callers may call."""
        return self._authenticate is not None

    async def _wait(
        self, request: Request, authenticating: Awaitable[Principal]
    ) -> Response | ResponseStream:
        try:
            async with asyncio.timeout(authentication.WAIT_SECONDS):
                principal = await authenticating
        except TimeoutError:
            return authentication.reject_late().response
        handled = self._admit(request, principal)
        return handled if isinstance(handled, Response) else await handled

    def _admit(self, request: Request, principal: object) -> Handled:
        request.principal = authentication.checked(principal)
        if request.principal is None:
            return authentication.reject_caller(request).response
        return self._answer(request)

    def _answer(self, request: Request) -> Handled:
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
    tokens: Tokens | None = None,
    authenticate: Authenticate | None = None,
) -> Application:
    """Make the application of a bridge; by default only loopback names are accepted as Host and Origin.

    With `tokens` (secrets, or a mapping from secrets to the names of callers) or `authenticate` (a function
    from the headers to the caller's name or None, plain or async) everybody else is refused with 401.
    """
    if tokens is not None and authenticate is not None:
        raise ValueError("application takes either tokens or authenticate, not both")
    if tokens is not None:
        authenticate = authentication.accept_tokens(tokens)
    return Application(
        Dispatcher(bridge, limits=limits, state_key=state_key),
        Guard(allowed_hosts, allowed_origins),
        retry_ms=retry_ms,
        authenticate=authenticate,
    )
