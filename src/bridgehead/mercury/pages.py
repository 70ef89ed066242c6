"""Pages: health, readiness and metrics beside `/mcp`, in the contract's HTTP mode (`MCP_TRANSPORT=http`).

Paths and rules are those of `bridgehead serve`: readiness fails only if nothing can be served, since an API
that is down is down for every replica. Imported by a server over HTTP alone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bridgehead.mcp.http.message import Response
from bridgehead.runtime.exposition import CONTENT_TYPE, write_metrics
from bridgehead.runtime.manifest import FarSide
from bridgehead.runtime.metrics import Metrics

_NOT_STORED = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


def make_pages(far_side: Callable[[], FarSide], metrics: Metrics) -> dict[str, Callable[[], Response]]:
    """Return the pages by their path."""

    def show_health() -> Response:
        return Response(200, b'{"status":"ok"}', _NOT_STORED)

    def show_readiness() -> Response:
        state = far_side()
        bridge = {"serves": True, "far_side": state.is_up, "says": state.detail}
        report = {"status": "ready" if state.is_up else "degraded", "bridges": {"mercury": bridge}}
        return Response(200, msgspec.json.encode(report), _NOT_STORED)

    def show_metrics() -> Response:
        page = write_metrics([((("bridge", "mercury"),), metrics)])
        return Response(200, page, ((b"content-type", CONTENT_TYPE),))

    return {
        "/health": show_health,
        "/healthz": show_health,
        "/readyz": show_readiness,
        "/metrics": show_metrics,
    }
