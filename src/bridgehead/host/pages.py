"""Pages: what the host answers itself, beside the bridges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bridgehead.mcp.http.exchange import Outcome, Whole

from . import health, metrics_page
from .accounts import Accounts
from .refusals import wrong_method
from .registry import Registry
from .routes import ALIVE, METRICS, READY, RESOURCE, Route
from .siblings import Siblings
from .visit import Visit

Page = Callable[[Visit, Route], Outcome]


class Pages:
    """The pages by the name of their route."""

    def __init__(
        self,
        registry: Registry,
        accounts: Accounts,
        resource: Callable[[Visit], Whole] | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        self._registry = registry
        self._accounts = accounts
        self._resource = resource
        self._siblings = siblings

    def answer(self, visit: Visit, route: Route) -> Outcome:
        """Answer a request to a page."""
        if visit.method not in {"GET", "HEAD"}:
            raise wrong_method(visit.method, b"GET")
        pages: dict[str, Page] = {
            ALIVE: lambda _visit, _route: health.alive(),
            READY: self._ready,
            METRICS: self._metrics,
            RESOURCE: self._about_resource,
        }
        return pages[route.name](visit, route)

    def _ready(self, visit: Visit, route: Route) -> Whole:
        if route.bridge is None:
            return health.ready(self._registry, visit.grant)
        return health.ready_bridge(self._registry, route.bridge, visit.grant)

    def own_metrics(self) -> bytes:
        """Write what this process counts."""
        given = () if self._siblings is None else (("worker", str(self._siblings.index)),)
        return metrics_page.written(metrics_page.sources(self._registry, self._accounts, given))

    async def _metrics(self, _visit: Visit, _route: Route) -> Whole:
        texts = [self.own_metrics()]
        if self._siblings is not None:
            asked = (self._siblings.metrics(number) for number in self._siblings.others)
            texts += await asyncio.gather(*asked)
        return Whole(200, metrics_page.joined(texts), ((b"content-type", metrics_page.CONTENT_TYPE),))

    def _about_resource(self, visit: Visit, _route: Route) -> Whole:
        assert self._resource is not None  # noqa: S101 - the route is there only where it is
        return self._resource(visit)
