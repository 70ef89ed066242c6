"""Callers: how much each caller has open, so that one caller cannot use up what is there for all.

A caller is its principal or, without authentication, its address. Sessions, streams and requests are counted
over everything that one host serves.
"""

from __future__ import annotations

from math import ceil

from ..errors import OVERLOADED
from ..limits import Limits
from .message import Request
from .rejection import Rejection


class Share:
    """How many sessions, streams or requests each caller has open."""

    def __init__(self, name: str, limit: int, retry_seconds: float) -> None:
        self._name = name
        self.limit = limit
        self._retry_seconds = retry_seconds
        # A plain dict: it is read for every request, and a Counter handles missing keys in Python code.
        self.by_caller: dict[str, int] = {}
        """Callers with something open, and how much."""

    @property
    def total(self) -> int:
        """How much is open, over all callers."""
        return sum(self.by_caller.values())

    def check(self, caller: str) -> None:
        """Reject a caller that has reached the limit."""
        if self.by_caller.get(caller, 0) >= self.limit:
            headers = ((b"retry-after", b"%d" % ceil(self._retry_seconds)),)
            message = f"You have {self.limit} {self._name} open, which is the limit. End one, then try again."
            raise Rejection(429, message, code=OVERLOADED, headers=headers)

    def take(self, caller: str) -> None:
        """Count one more."""
        self.by_caller[caller] = self.by_caller.get(caller, 0) + 1

    def give_back(self, caller: str) -> None:
        """Count one less; a caller with nothing open is removed, so that the dict stays small."""
        left = self.by_caller[caller] - 1
        if left:
            self.by_caller[caller] = left
        else:
            del self.by_caller[caller]


class Callers:
    """The shares of all callers."""

    def __init__(self, limits: Limits) -> None:
        self.sessions = Share("sessions", limits.sessions_per_caller, 30)
        self.streams = Share("streams", limits.streams_per_caller, 5)
        self.requests = Share("requests", limits.http_requests_per_caller, 1)


def caller_of(request: Request) -> str:
    """Return the name that a request is counted under."""
    return request.principal or request.address
