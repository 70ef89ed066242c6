"""Host rejections: why a request is not served, in words that responses, logs and metrics share."""

from __future__ import annotations

from math import ceil

from bridgehead.mcp import INVALID_REQUEST, OVERLOADED
from bridgehead.mcp.http.message import HeaderPairs
from bridgehead.mcp.http.rejection import Rejection


class HostRejection(Rejection):
    """A rejection with the word under which it is counted and logged."""

    def __init__(
        self,
        status: int,
        message: str,
        reason: str,
        *,
        headers: HeaderPairs = (),
        code: int = INVALID_REQUEST,
    ) -> None:
        super().__init__(status, message, code=code, headers=headers)
        self.reason = reason


def challenge(details: str) -> tuple[bytes, bytes]:
    """Make the header that says how a caller has to show who it is."""
    return b"www-authenticate", f'Bearer realm="bridgehead"{details}'.encode("latin-1", "replace")


def reject_path(path: str) -> HostRejection:
    """Reject a path that leads nowhere."""
    return HostRejection(404, f"There is nothing at {path[:200]}", "path")


def reject_method(method: str, allowed: bytes) -> HostRejection:
    """Reject a method that a page does not know."""
    return HostRejection(405, f"{method} is not used here", "method", headers=((b"allow", allowed),))


def reject_rate(message: str, wait: float, reason: str) -> HostRejection:
    """Reject what comes too often, and say when it may come again."""
    headers = ((b"retry-after", b"%d" % max(1, ceil(wait))),)
    return HostRejection(429, message, reason, headers=headers, code=OVERLOADED)
