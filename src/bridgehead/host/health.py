"""Health: whether the process lives, and which bridges can serve. For probes, and for people.

A probe shows no token, so where auth is on it learns which bridges are ready and nothing more; what a far
side says is for callers who may use that bridge.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bridgehead.mcp.http.exchange import JSON, Whole

from .grants import Grant
from .registry import Registry, Standing

_NOT_STORED = (JSON, (b"cache-control", b"no-store"))


def alive() -> Whole:
    """Say that the process answers."""
    return Whole(200, b'{"status":"ok"}', _NOT_STORED)


def ready(registry: Registry, grant: Grant | None) -> Whole:
    """Say which bridges can serve; 503 only where none can."""
    bridges = {name: _told(registry, standing, grant) for name, standing in registry.standings.items()}
    serving = [standing for standing in registry.standings.values() if not standing.problem]
    well = all(told["far_side"] for told in bridges.values())
    status = "unavailable" if not serving else "ready" if well else "degraded"
    return _page({"status": status, "bridges": bridges}, 200 if serving else 503)


def ready_bridge(registry: Registry, name: str, grant: Grant | None) -> Whole:
    """Say whether one bridge can serve and has its far side."""
    told = _told(registry, registry.standings[name], grant)
    return _page({"bridge": name, **told}, 200 if told["serves"] and told["far_side"] else 503)


def _told(registry: Registry, standing: Standing, grant: Grant | None) -> dict[str, Any]:
    far_side = registry.far_side(standing)
    told: dict[str, Any] = {"serves": not standing.problem, "far_side": far_side.is_there}
    if grant is not None and grant.may_read(standing.name):
        told["says"] = far_side.says
    return told


def _page(body: dict[str, Any], status: int) -> Whole:
    return Whole(status, msgspec.json.encode(body), _NOT_STORED)
