"""Admission: checks the route, caller, rate and rights of every request."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bridgehead.mcp.http.guard import Guard
from bridgehead.mcp.http.rejection import Rejection

from ..request import HostRequest
from ..routes import EVENTS, PAGES, Route
from .authenticator import Authenticator
from .grants import ANYONE, Grant, needed_scope
from .rejection import HostRejection, challenge, reject_path, reject_rate
from .shared_throttle import SharedThrottle
from .throttle import Throttle
from .tokens import PREFIX

_OWN = f"bearer {PREFIX}_".encode()


class Admission:
    """Call `route`, `authenticate`, `count` and `authorize`, in this order."""

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
        """Replaces `throttle` if there are other replicas."""
        self._challenge_details = challenge_details
        """Returns further parameters of a challenge: where a client gets a token."""

    def route(self, request: HostRequest) -> Route:
        """Find the route of a request. Raises Rejection for a wrong Host, Origin or path."""
        route = self._routes.get(request.path)
        if route is None and request.path.startswith(f"{PAGES}/"):
            route = self._routes.get(PAGES)  # the dashboard answers: a person who mistypes gets a page
        if route is not None:
            request.route = route.name
            if route.access == "probe":  # not guarded: probes send an IP address as Host
                return route
        self._guard.check(request.headers)
        # Not for the dashboard: no page of another origin may read it, not even an allowed one.
        if b"origin" in request.headers and (route is None or route.access != "page"):
            request.allow_origin()
        if route is None:
            raise reject_path(request.path)
        return route

    async def authenticate(self, request: HostRequest) -> Grant:
        """Return the grant of the caller. Raises Rejection."""
        authenticator = self._authenticator
        if not authenticator.needs_token:
            # No token is needed, but one of ours still decides rights and limits. Others are ignored: some
            # clients send their credentials to every server.
            sent = request.headers.get(b"authorization", b"")[: len(_OWN)]
            if sent.lower() != _OWN or not authenticator.issuers:
                return ANYONE

        def challenge_details() -> str:
            details, route = self._challenge_details(request), self._routes.get(request.path)
            if not details or route is None:
                return details
            # Clients ask the issuer for every scope that it knows unless the challenge names one.
            scope = needed_scope(route.bridge, is_mcp=route.is_mcp, page=route.name)
            return f'{details}, scope="{scope}"'

        return await authenticator.check(request.headers, request.address, challenge_details)

    def is_anonymous(self, request: HostRequest) -> bool:
        """Tell whether a probe is answered without identifying its caller."""
        # Under an unknown Host or from a foreign origin a token is ignored, so it cannot open details.
        try:
            self._guard.check(request.headers)
        except Rejection:
            return True
        return self._authenticator.needs_token and b"authorization" not in request.headers

    async def count(self, grant: Grant) -> None:
        """Count a request of this caller; raise Rejection if it has made too many."""
        if not grant.per_minute:
            return
        name, limit = grant.name or "", grant.per_minute
        wait = (
            self._throttle.take(name, limit) if self._shared is None else await self._shared.take(name, limit)
        )
        if wait:
            raise reject_rate(f"{grant.name} may make {limit} requests a minute", wait, "limit")

    def authorize(self, request: HostRequest, route: Route, grant: Grant) -> None:
        """Raise HostRejection if the grant does not open the route; set the caller of the HTTP request."""
        if not route.is_mcp:
            is_open = grant.events if route.name == EVENTS else grant.metrics
        elif route.bridge is None:
            is_open = bool(grant.full or grant.reading)
        else:
            is_open = grant.may_read(route.bridge)
        if not is_open:
            what = (route.bridge or "any bridge") if route.is_mcp else route.name.removeprefix("/")
            scope = needed_scope(route.bridge, is_mcp=route.is_mcp, page=route.name)
            details = f', error="insufficient_scope", scope="{scope}"{self._challenge_details(request)}'
            message = f"This token does not open {what}"
            raise HostRejection(403, message, "grant", headers=(challenge(details),))
        request.http.principal, request.http.token_id = grant.name, grant.owner
