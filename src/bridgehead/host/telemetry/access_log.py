"""Access log: a line for each request, or for each that was rejected or failed.

Lines about rejections are limited for each address, so that a client that is rejected all the time cannot
fill the disk. The lines that are left out are counted, and the count is logged.
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
"""Seconds between lines about the lines left out."""
_ADDRESS_LIMIT = 10_000
_FAILED = 400
_SERVER_ERROR = 500

log = logs.logger("host.access")


class AccessLog:
    """Logs requests by their status; `all`, `failures` or `off`."""

    def __init__(self, level: str, clock: Clock) -> None:
        self.set_level(level)
        self._lines = Throttle(clock.monotonic)
        self._left_out: Counter[str] = Counter()

    def set_level(self, level: str) -> None:
        """Set which requests get a line: all, failures, or off."""
        self.minimum_status = {"all": 0, "failures": _FAILED, "off": 1000}[level]

    def write(self, request: HostRequest, status: int, seconds: float) -> None:
        """Log a finished request. Failed authentication gets a line even if the log is off."""
        is_unauthenticated = request.reason.startswith("token_")
        if status < self.minimum_status and not is_unauthenticated:
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
            log_line = log.error if status >= _SERVER_ERROR else log.warn
            log_line(event, **_fields(request, status, seconds), **self._take_left_out(request.address))

    def write_early(self, reason: str, address: str, status: int) -> None:
        """Log a connection that was rejected before it sent a request; status 0 means that none was sent."""
        if self.minimum_status <= _FAILED and self._has_room(address):
            answered = {"status": status} if status else {}
            log.warn(
                "connection rejected",
                **answered,
                address=address,
                reason=reason,
                **self._take_left_out(address),
            )

    def _has_room(self, address: str) -> bool:
        """Return whether an address may have another line; otherwise count the line as omitted."""
        if not self._lines.take(address, LINES_PER_MINUTE):
            return True
        # Bounded: an attacker with many addresses must not fill the memory instead of the disk.
        if len(self._left_out) < _ADDRESS_LIMIT or address in self._left_out:
            self._left_out[address] += 1
        return False

    def _take_left_out(self, address: str) -> dict[str, int]:
        left_out = self._left_out.pop(address, 0)
        return {"left_out": left_out} if left_out else {}

    async def run(self) -> None:
        """Log the lines left out once a minute, for addresses that do not return."""
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            self.settle()

    def settle(self) -> None:
        """Log how many lines were left out, in one line for all addresses."""
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
