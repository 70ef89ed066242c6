"""Access log: a line for each request, or for each that was turned away or failed.

Lines about refusals are bounded for each address, so that whoever is refused very often does not fill a disk;
what was left out is counted and said.
"""

from __future__ import annotations

from collections import Counter

from bridgehead.runtime import logs
from bridgehead.runtime.clock import Clock

from .throttle import Throttle
from .visit import Visit

LINES_PER_MINUTE = 60
_MOST_ADDRESSES = 10_000
_FAILED = 400
_OWN_FAULT = 500

log = logs.logger("host.access")


class AccessLog:
    """Writes about visits as much as is wanted."""

    def __init__(self, wanted: str, clock: Clock) -> None:
        self._least = {"all": 0, "failures": _FAILED, "off": 1000}[wanted]
        self._lines = Throttle(clock.monotonic)
        self._left_out: Counter[str] = Counter()

    def note(self, visit: Visit, status: int, seconds: float) -> None:
        """Write about a request that is over."""
        is_stranger = visit.reason.startswith("token_")
        if status < self._least and not is_stranger:  # who is not let in is always worth a line
            return
        if status < _FAILED:
            log.info("request", **_facts(visit, status, seconds))
            return
        if self._lines.take(visit.address, LINES_PER_MINUTE):
            if len(self._left_out) < _MOST_ADDRESSES:
                self._left_out[visit.address] += 1
            return
        facts = _facts(visit, status, seconds)
        left_out = self._left_out.pop(visit.address, 0)
        if left_out:
            facts["left_out"] = left_out
        event = (
            "a caller was not let in"
            if is_stranger
            else "request refused"
            if visit.reason
            else "request failed"
        )
        (log.error if status >= _OWN_FAULT else log.warn)(event, **facts)


def _facts(visit: Visit, status: int, seconds: float) -> dict[str, object]:
    facts: dict[str, object] = {
        "request": visit.id,
        "method": visit.method,
        "path": visit.path[:200],
        "status": status,
        "ms": round(seconds * 1000, 1),
        "client": visit.address,
    }
    if visit.grant is not None and visit.grant.name is not None:
        facts["name"] = visit.grant.name
    if visit.reason:
        facts["reason"] = visit.reason
    return facts
