"""Admission: where a request wants to go, who makes it, and whether that caller may."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from bridgehead.mcp.http.guard import Guard
from bridgehead.mcp.http.rejection import Rejection

from ..routes import EVENTS, Route
from .authenticator import Authenticator
from .grants import Grant, needed_scope
from .rejection import HostRejection, challenge, reject_path, reject_rate
from .throttle import Throttle

if TYPE_CHECKING:
    from ..request import HostRequest
    from .shared_throttle import SharedThrottle


class Admission:
    """The rules that every request passes, in their order."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        guard: Guard,
        authenticator: Authenticator,
        throttle: Throttle,
        challenge_details: Callable[[HostRequest], str],
        shared: SharedThrottle | None = None,
    ) -> None:
        self._routes = routes
        self._guard = guard
        self._authenticator = authenticator
        self._throttle = throttle
        self._shared = shared
        """What counts in its place where there are other replicas."""
        self._challenge_details = challenge_details
        """What the challenge for a caller without a token adds."""

    def route(self, request: HostRequest) -> Route:
        """Find where a request goes. Raises Rejection where it may not even ask."""
        route = self._routes.get(request.path)
        if route is not None:
            request.route = route.name
            if route.access == "probe":
                return route
        self._guard.check(request.headers)
        if route is None or route.access != "page":  # what a browser shows is for no other page to read
            request.allow_origin()
        if route is None:
            raise reject_path(request.path)
        return route

    def authenticate(self, request: HostRequest) -> Grant | None:
        """Find who makes a request that needs a token; None where that takes waiting. Raises Rejection."""
        return self._authenticator.check(request.headers, request.address, lambda: self._explain(request))

    async def authenticate_later(self, request: HostRequest) -> Grant:
        """Do the same, with waiting."""
        return await self._authenticator.check_later(
            request.headers, request.address, lambda: self._explain(request)
        )

    def _explain(self, request: HostRequest) -> str:
        """Say where a token is to be had and which scope it needs: a client asks for everything otherwise."""
        details, route = self._challenge_details(request), self._routes.get(request.path)
        if not details or route is None:
            return details
        scope = needed_scope(route.bridge, is_mcp=route.is_mcp, page=route.name)
        return f'{details}, scope="{scope}"'

    def is_anonymous(self, request: HostRequest) -> bool:
        """Tell whether a request that needs no token comes without one, or by a name we do not have."""
        try:
            self._guard.check(request.headers)
        except Rejection:
            return True
        return self._authenticator.needs_token and b"authorization" not in request.headers

    def count(self, request: HostRequest, grant: Grant) -> Coroutine[Any, Any, None] | None:
        """Note who makes a request, and reject it where this caller has made too many.

        Returns what is to be awaited first, where other replicas have to be asked.
        """
        request.grant = grant
        if not grant.per_minute:
            return None
        if self._shared is None:
            _reject_excess(grant, self._throttle.take(grant.name or "", grant.per_minute))
        elif not self._shared.take_now(grant.name or "", grant.per_minute):
            return self._count_later(self._shared, grant)
        return None

    @staticmethod
    async def _count_later(shared: SharedThrottle, grant: Grant) -> None:
        _reject_excess(grant, await shared.take(grant.name or "", grant.per_minute))

    def authorize(self, request: HostRequest, route: Route, grant: Grant) -> None:
        """Reject what a caller may not, and note on whose behalf the rest is done."""
        if not _opens(grant, route):
            raise self._reject_scope(request, route)
        request.http.principal, request.http.token_id = grant.name, grant.token_id

    def _reject_scope(self, request: HostRequest, route: Route) -> HostRejection:
        what = (route.bridge or "any bridge") if route.is_mcp else route.name.removeprefix("/")
        wanted = needed_scope(route.bridge, is_mcp=route.is_mcp, page=route.name)
        details = f', error="insufficient_scope", scope="{wanted}"{self._challenge_details(request)}'
        message = f"This token does not open {what}"
        return HostRejection(403, message, "grant", headers=(challenge(details),))


def _reject_excess(grant: Grant, wait: float) -> None:
    if wait:
        raise reject_rate(f"{grant.name} may make {grant.per_minute} requests a minute", wait, "limit")


def _opens(grant: Grant, route: Route) -> bool:
    if not route.is_mcp:
        return grant.events if route.name == EVENTS else grant.metrics
    if route.bridge is None:
        return bool(grant.full or grant.reading)
    return grant.may_read(route.bridge)
