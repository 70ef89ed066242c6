"""Audit: one log line for each call of a tool that is not read-only: client, tool and outcome.

Calls of read-only tools are in the access log and the metrics. `client` and `request` mean the same as in all
other lines; `request` joins the lines about one request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from bridgehead.mcp import Bridge, Invocation, Outcome
from bridgehead.runtime import logs

from ..request import current_request

log = logs.logger("host.audit")

Audit = Callable[[Invocation, Outcome, float], None]
"""Takes a finished call, its outcome and its duration in seconds."""
StoreAudit = Callable[[float, Mapping[str, Any]], None]
"""Takes the time (seconds since the epoch) and fields of a line, and stores it for all replicas."""


def audit_changes(name: str, bridge: Bridge[Any], store: StoreAudit | None = None) -> Audit:
    """Return a function to run after every call of a bridge; it logs those that may change something."""

    def end(call: Invocation, outcome: Outcome, seconds: float) -> None:
        tool = bridge.tools.get(call.name) if call.kind == "tool" else None
        if tool is None or tool.is_read_only:
            return
        fields = {
            "bridge": name,
            "tool": call.name,
            "client": call.context.principal or "(anyone)",
            "outcome": outcome.status,
            "ms": round(seconds * 1000, 1),
        }
        log.info("a call that may change something", **fields)
        if store is not None:
            request = current_request.get()
            store(time.time(), {**fields, "request": "" if request is None else request.id})

    return end
