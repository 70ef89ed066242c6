"""Admission: where a request wants to go, who makes it, and whether that caller may."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bridgehead.mcp.http.exchange import Refused
from bridgehead.mcp.http.guard import Guard

from .auth import GateKeeper
from .grants import Grant
from .refusals import Refusal, nothing_there, too_often
from .routes import Route
from .throttle import Throttle
from .visit import Visit


class Admission:
    """The rules that every request passes, in their order."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        guard: Guard,
        gate: GateKeeper,
        throttle: Throttle,
        challenge: Callable[[Visit], str] = lambda _visit: "",
    ) -> None:
        self._routes = routes
        self._guard = guard
        self._gate = gate
        self._throttle = throttle
        self._challenge = challenge
        """What a caller without a token is told beyond that it needs one."""

    def route(self, visit: Visit) -> Route:
        """Find where a request goes. Raises Refused where it may not even ask."""
        route = self._routes.get(visit.path)
        if route is not None:
            visit.counted_as = route.name
            if route.door == "open":
                return route
        self._guard.check(visit.headers)
        visit.origin = visit.headers.get(b"origin")
        if route is None:
            raise nothing_there(visit.path)
        return route

    def grant(self, visit: Visit) -> Grant | None:
        """Find who makes a request that needs a token; None where that takes waiting. Raises Refusal."""
        return self._gate.grant(visit.headers, visit.address, self._challenge(visit))

    async def ask(self, visit: Visit) -> Grant:
        """Do the same, with waiting."""
        return await self._gate.ask(visit.headers, visit.address, self._challenge(visit))

    def prober(self, visit: Visit) -> Grant | None:
        """Find who makes a request that needs no token, where it has a good one all the same."""
        try:
            self._guard.check(visit.headers)
            return self._gate.recognised(visit.headers)
        except Refused:
            return None

    def let_in(self, visit: Visit, route: Route, grant: Grant) -> None:
        """Note who makes a request, and refuse what this caller may not, or not so often."""
        visit.grant = grant
        if grant.per_minute:
            wait = self._throttle.take(grant.name or "", grant.per_minute)
            if wait:
                raise too_often(f"{grant.name} may make {grant.per_minute} requests a minute", wait, "limit")
        if route.is_mcp:
            if route.bridge is not None and not grant.may_read(route.bridge):
                raise Refusal(403, f"This token does not open {route.bridge}", "grant")
            if grant.name is not None:
                visit.scope["state"]["principal"] = grant.name
        elif not grant.metrics:
            raise Refusal(403, "This token does not open the metrics", "grant")
