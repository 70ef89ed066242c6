"""Pages: the endpoints of the host itself: health, metrics, events, and OAuth resource metadata.

Without a token a probe learns which bridges are ready and nothing more; the details of a far side are for
callers who may use that bridge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bridgehead.mcp.http.message import JSON, AnyResponse, Response
from bridgehead.runtime import events
from bridgehead.runtime.exposition import (
    CONTENT_TYPE,
    OPENMETRICS,
    OPENMETRICS_TYPE,
    SourceLabels,
    to_openmetrics,
    write_metrics,
)
from bridgehead.runtime.metrics import Metrics

from .audit.trail import Trail
from .auth.grants import Grant
from .auth.rejection import reject_method
from .database import HostDatabase
from .events.stream import EventStreams
from .registry import BridgeStatus, Registry
from .replicas.replica import Replica
from .request import HostRequest
from .routes import ALIVE, METRICS, NO_OAUTH, READY, RESOURCE, Route
from .telemetry.metrics import HostMetrics

_NOT_STORED = (JSON, (b"cache-control", b"no-store"))


class Pages:
    """The pages by the name of their route."""

    def __init__(
        self,
        registry: Registry,
        metrics: HostMetrics,
        describe_resource: Callable[[HostRequest, str | None], Response] | None = None,
        replica: Replica | None = None,
        database: HostDatabase | None = None,
        trail: Trail | None = None,
    ) -> None:
        self._registry = registry
        self._metrics = metrics
        self.events = EventStreams(events.feed)
        self.events.declare_metrics(metrics.metrics)
        self._replica = replica
        self._database = database
        self._trail = trail
        self.is_ending = False
        """Whether the process is stopping: readiness fails, so that load balancers stop routing here."""
        self._describe_resource = describe_resource

    async def answer(self, request: HostRequest, route: Route) -> AnyResponse:
        """Answer a request to a page."""
        if route.name == NO_OAUTH:
            return _NO_OAUTH
        if request.method not in {"GET", "HEAD"}:
            raise reject_method(request.method, b"GET")
        if route.name == ALIVE:
            return _ALIVE
        if route.name == READY:
            return self._ready(request, route)
        if route.name == METRICS:
            return self._write_metrics(request)
        if route.name == RESOURCE and self._describe_resource is not None:
            return self._describe_resource(request, route.bridge)
        return await self.events.serve(request.http)

    # --- health --------------------------------------------------------------------------------------------

    def _ready(self, request: HostRequest, route: Route) -> Response:
        """Report one bridge (503 unless it serves and its far side is up) or all (503 if none serves)."""
        # The two rules differ on purpose: a load balancer asks for all, and a far side that is down for
        # every host must not take all hosts out of service.
        grant, statuses = request.grant, self._registry.statuses
        if route.bridge is not None:
            report = self._describe(statuses[route.bridge], grant)
            is_ready = report["serves"] and report["far_side"] and self._has_tokens and not self.is_ending
            return _page({"bridge": route.bridge, **report}, 200 if is_ready else 503)
        bridges = {name: self._describe(status, grant) for name, status in statuses.items()}
        serving = [status for status in statuses.values() if not status.problem and self._has_tokens]
        stores = self._stores(grant)
        has_all = all(report["far_side"] for report in bridges.values()) and all(
            report["up"] for report in stores.get("stores", {}).values()
        )
        summary = "unavailable" if not serving else "ready" if has_all else "degraded"
        if self.is_ending:
            summary = "ending"
        status = 200 if serving and not self.is_ending else 503
        return _page({"status": summary, "bridges": bridges, **stores}, status)

    @property
    def _has_tokens(self) -> bool:
        return self._database is None or self._database.has_tokens

    def _stores(self, grant: Grant | None) -> dict[str, Any]:
        """Report the shared stores; the reason why one is down only to operators."""
        named = (("postgresql", self._database), ("redis", self._replica))
        stores = {name: store.describe() for name, store in named if store is not None}
        if grant is None or not grant.may_look:
            stores = {name: {"up": report["up"]} for name, report in stores.items()}
        return {"stores": stores} if stores else {}

    def _describe(self, status: BridgeStatus, grant: Grant | None) -> dict[str, Any]:
        far_side = self._registry.far_side(status)
        report: dict[str, Any] = {"serves": not status.problem, "far_side": far_side.is_up}
        if grant is not None and grant.may_read(status.name):
            report["says"] = far_side.detail
        return report

    # --- metrics -------------------------------------------------------------------------------------------

    def sources(self) -> Iterator[tuple[SourceLabels, Metrics]]:
        """Yield every metric set with its labels: the host's, the stores', and each bridge's."""
        yield (), self._metrics.metrics
        yield (), self._registry.metrics
        if self._replica is not None:
            yield (), self._replica.metrics
        if self._database is not None:
            yield (), self._database.metrics
        if self._trail is not None:
            yield (), self._trail.metrics
        for name, status in self._registry.statuses.items():
            if status.bridge is not None:
                yield (("bridge", name),), status.metrics

    def _write_metrics(self, request: HostRequest) -> Response:
        page = write_metrics(self.sources())
        if OPENMETRICS in request.headers.get(b"accept", b""):
            return Response(200, to_openmetrics(page), ((b"content-type", OPENMETRICS_TYPE),))
        return Response(200, page, ((b"content-type", CONTENT_TYPE),))


# The body has the fields of an OAuth error (RFC 6749, section 5.2), which is what clients look for here.
_NO_OAUTH = Response(
    404,
    msgspec.json.encode(
        {
            "error": "access_denied",
            "error_description": "This server does not use OAuth: its operator gives out the tokens. "
            "Yours is missing, wrong, revoked or expired. Ask the operator for one, and send it as the "
            "header Authorization: Bearer TOKEN.",
        }
    ),
    _NOT_STORED,
)
_ALIVE = Response(200, b'{"status":"ok"}', _NOT_STORED)


def _page(body: dict[str, Any], status: int) -> Response:
    return Response(status, msgspec.json.encode(body), _NOT_STORED)
