"""Host rejections: refused requests, each with a reason that logs and metrics share."""

from __future__ import annotations

from math import ceil

from bridgehead.mcp import INVALID_REQUEST, OVERLOADED
from bridgehead.mcp.http.message import HeaderPairs
from bridgehead.mcp.http.rejection import Rejection


class HostRejection(Rejection):
    """A rejection with a reason: one word under which it is counted and logged."""

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
    """Return the `WWW-Authenticate` header of a 401 or 403 (RFC 6750, section 3)."""
    return b"www-authenticate", f'Bearer realm="bridgehead"{details}'.encode("latin-1", "replace")


def reject_path(path: str) -> HostRejection:
    """Reject an unknown path (404)."""
    return HostRejection(404, f"There is nothing at {path[:200]}", "path")


def reject_method(method: str, allowed: bytes) -> HostRejection:
    """Reject a method that a page does not support (405)."""
    return HostRejection(405, f"{method} is not used here", "method", headers=((b"allow", allowed),))


def reject_rate(message: str, wait: float, reason: str) -> HostRejection:
    """Reject a request over a rate limit (429); `wait` is the Retry-After in seconds."""
    # Rounded up, and at least 1: clients read 0 as "at once".
    headers = ((b"retry-after", b"%d" % max(1, ceil(wait))),)
    return HostRejection(429, message, reason, headers=headers, code=OVERLOADED)
