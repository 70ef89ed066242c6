"""Audit: one line in the log for each call that changes something. Who, what, and what came of it.

A call of a tool that only reads leaves none here: the access log and the metrics have it. The words are those
of every other line: `client` is who calls, `request` the id under which all lines about it are found.
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


StoreAudit = Callable[[float, Mapping[str, Any]], None]
"""Takes a moment and the fields of a line, and stores it where all replicas' are."""


def audit_changes(name: str, bridge: Bridge[Any], store: StoreAudit | None = None) -> Audit:
    """Make what writes about the calls of a bridge that change something, and is told of all of them."""

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
