"""Access log: a line for each request, or for each that was rejected or failed.

Lines about rejections are bounded for each address, so that whoever is rejected very often fills no disk;
what was left out is counted and said.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from bridgehead.runtime import logs
from bridgehead.runtime.timing import Clock

from ..auth.throttle import Throttle
from ..request import HostRequest, hide_tokens, trace_fields

LINES_PER_MINUTE = 60
SETTLE_SECONDS = 60.0
"""How long it may take until it is said how many lines were left out."""
_MOST_ADDRESSES = 10_000
_FAILED = 400
_OWN_FAULT = 500

log = logs.logger("host.access")


class AccessLog:
    """Writes about requests as much as is wanted."""

    def __init__(self, wanted: str, clock: Clock) -> None:
        self.set_level(wanted)
        self._lines = Throttle(clock.monotonic)
        self._left_out: Counter[str] = Counter()

    def set_level(self, wanted: str) -> None:
        """Say which requests get a line: all, failures, or off."""
        self._least = {"all": 0, "failures": _FAILED, "off": 1000}[wanted]

    def write(self, request: HostRequest, status: int, seconds: float) -> None:
        """Write about a request that is over."""
        is_unauthenticated = request.reason.startswith("token_")
        if status < self._least and not is_unauthenticated:  # which is always worth a line
            return
        if status < _FAILED:
            log.info("request", **_fields(request, status, seconds))
            return
        event = (
            "authentication failed"
            if is_unauthenticated
            else "request rejected"
            if request.reason
            else "request failed"
        )
        if self._has_room(request.address):
            log_line = log.error if status >= _OWN_FAULT else log.warn
            log_line(event, **_fields(request, status, seconds), **self._take_left_out(request.address))

    def write_early(self, reason: str, address: str, status: int) -> None:
        """Write about something that was rejected before it was a request; the status is 0 where none was."""
        if self._least <= _FAILED and self._has_room(address):
            answered = {"status": status} if status else {}
            log.warn(
                "connection rejected",
                **answered,
                address=address,
                reason=reason,
                **self._take_left_out(address),
            )

    def _has_room(self, address: str) -> bool:
        """Tell whether an address may have another line, and count what it may not."""
        if not self._lines.take(address, LINES_PER_MINUTE):
            return True
        if len(self._left_out) < _MOST_ADDRESSES or address in self._left_out:
            self._left_out[address] += 1
        return False

    def _take_left_out(self, address: str) -> dict[str, int]:
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
            log.warn("further rejections", left_out=self._left_out.total(), addresses=len(self._left_out))
            self._left_out.clear()


def _fields(request: HostRequest, status: int, seconds: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "request": request.id,
        "method": request.method,
        "path": hide_tokens(request.path[:200]),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "address": request.address,
    }
    if request.grant is not None and request.grant.name is not None:
        fields["client"] = request.grant.name  # the same word as in audit lines, metrics and usage
    if request.reason:
        fields["reason"] = request.reason
    return fields | trace_fields(request)
