"""Admission: where a request wants to go, who makes it, and whether that caller may."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bridgehead.mcp.http.exchange import Refused
from bridgehead.mcp.http.guard import Guard

from . import scopes
from .auth import GateKeeper
from .grants import Grant
from .refusals import Refusal, challenged, nothing_there, too_often
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
        return self._gate.grant(visit.headers, visit.address, lambda: self._challenge(visit))

    async def ask(self, visit: Visit) -> Grant:
        """Do the same, with waiting."""
        return await self._gate.ask(visit.headers, visit.address, lambda: self._challenge(visit))

    async def prober(self, visit: Visit) -> Grant | None:
        """Find who makes a request that needs no token; it need not say, but what it says must be true."""
        try:
            self._guard.check(visit.headers)
        except Refused:
            return None
        if self._gate.asks and b"authorization" not in visit.headers:
            return None
        return self.grant(visit) or await self.ask(visit)

    def let_in(self, visit: Visit, route: Route, grant: Grant) -> None:
        """Note who makes a request, and refuse what this caller may not, or not so often."""
        visit.grant = grant
        if grant.per_minute:
            wait = self._throttle.take(grant.name or "", grant.per_minute)
            if wait:
                raise too_often(f"{grant.name} may make {grant.per_minute} requests a minute", wait, "limit")
        if not _opens(grant, route):
            raise self._not_opened(visit, route)
        if grant.name is not None:
            visit.scope.setdefault("state", {})["principal"] = grant.name

    def _not_opened(self, visit: Visit, route: Route) -> Refusal:
        what = (route.bridge or "any bridge") if route.is_mcp else "metrics"
        wanted = scopes.WORD if what == "any bridge" else f"{scopes.WORD}:{what}"
        details = f', error="insufficient_scope", scope="{wanted}"{self._challenge(visit)}'
        return Refusal(403, f"This token does not open {what}", "grant", headers=(challenged(details),))


def _opens(grant: Grant, route: Route) -> bool:
    if not route.is_mcp:
        return grant.metrics
    if route.bridge is None:
        return bool(grant.full or grant.reading)
    return grant.may_read(route.bridge)
