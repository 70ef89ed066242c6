"""Refusals: why a request is turned away before it reaches a bridge, in words that logs and metrics share."""

from __future__ import annotations

from math import ceil

from bridgehead.mcp import INVALID_REQUEST, OVERLOADED
from bridgehead.mcp.http.exchange import HeaderPairs, Refused


class Refusal(Refused):
    """A refusal with the word under which it is counted and logged."""

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


def challenged(details: str) -> tuple[bytes, bytes]:
    """Make the header that says how a caller has to show who it is."""
    return b"www-authenticate", f'Bearer realm="bridgehead"{details}'.encode("latin-1", "replace")


def nothing_there(path: str) -> Refusal:
    """Refuse a path that leads nowhere."""
    return Refusal(404, f"There is nothing at {path[:200]}", "path")


def wrong_method(method: str, allowed: bytes) -> Refusal:
    """Refuse a method that a page does not know."""
    return Refusal(405, f"{method} is not used here", "method", headers=((b"allow", allowed),))


def too_often(message: str, wait: float, reason: str) -> Refusal:
    """Refuse what comes too often, and say when it may come again."""
    headers = ((b"retry-after", b"%d" % max(1, ceil(wait))),)
    return Refusal(429, message, reason, headers=headers, code=OVERLOADED)
