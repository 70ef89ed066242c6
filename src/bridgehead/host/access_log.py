"""Access log: a line for each request, or for each that was turned away or failed.

Lines about refusals are bounded for each address, so that whoever is refused very often does not fill a disk;
what was left out is counted and said.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from bridgehead.runtime import logs
from bridgehead.runtime.timing import Clock

from .throttle import Throttle
from .visit import Visit

LINES_PER_MINUTE = 60
SETTLE_SECONDS = 60.0
"""How long it may take until it is said how many lines were left out."""
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
        event = (
            "a caller was not let in"
            if is_stranger
            else "request refused"
            if visit.reason
            else "request failed"
        )
        if self._has_room(visit.address):
            write = log.error if status >= _OWN_FAULT else log.warn
            write(event, **_facts(visit, status, seconds), **self._said_late(visit.address))

    def note_early(self, reason: str, address: str, status: int) -> None:
        """Write about something that was refused before it was a request; the status is 0 where none was."""
        if self._least <= _FAILED and self._has_room(address):
            answered = {"status": status} if status else {}
            log.warn(
                "connection refused", **answered, client=address, reason=reason, **self._said_late(address)
            )

    def _has_room(self, address: str) -> bool:
        """Tell whether an address may have another line, and count what it may not."""
        if not self._lines.take(address, LINES_PER_MINUTE):
            return True
        if len(self._left_out) < _MOST_ADDRESSES or address in self._left_out:
            self._left_out[address] += 1
        return False

    def _said_late(self, address: str) -> dict[str, int]:
        left_out = self._left_out.pop(address, 0)
        return {"left_out": left_out} if left_out else {}

    async def run(self) -> None:
        """Say now and then what was left out, for addresses that do not come again."""
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            self.settle()

    def settle(self) -> None:
        """Say how much was left out, in one line for all addresses."""
        if self._left_out:
            log.warn("further refusals", left_out=self._left_out.total(), clients=len(self._left_out))
            self._left_out.clear()


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
