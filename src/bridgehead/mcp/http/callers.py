"""Callers: how much each caller has open, so that one of them cannot take what is there for all.

A caller is known by its principal, or by its address where nobody asks who it is. It is counted over
everything that one host serves, for each thing of which there is only so much.
"""

from __future__ import annotations

from math import ceil

from ..errors import OVERLOADED
from ..limits import Limits
from .message import Request
from .rejection import Rejection


class Share:
    """What callers have open of one thing."""

    def __init__(self, name: str, most: int, retry_seconds: float) -> None:
        self._name = name
        self.most = most
        self._retry_seconds = retry_seconds
        # A plain dict: asked for every request, and a Counter answers for what is missing in Python.
        self.open: dict[str, int] = {}
        """How much each caller has open; empty where nobody has, so nobody can have too much."""

    @property
    def by_caller(self) -> dict[str, int]:
        """How much each caller has open, of those that have something."""
        return self.open

    @property
    def total(self) -> int:
        """How much is open, over all callers."""
        return sum(self.open.values())

    def check(self, caller: str) -> None:
        """Reject a caller that has as much open as one may have."""
        if self.open.get(caller, 0) >= self.most:
            headers = ((b"retry-after", b"%d" % ceil(self._retry_seconds)),)
            message = f"You have {self.most} {self._name} open, which is the limit. End one, then try again."
            raise Rejection(429, message, code=OVERLOADED, headers=headers)

    def take(self, caller: str) -> None:
        """Count one more."""
        self.open[caller] = self.open.get(caller, 0) + 1

    def give_back(self, caller: str) -> None:
        """Count one less; who has nothing open is forgotten."""
        left = self.open[caller] - 1
        if left:
            self.open[caller] = left
        else:
            del self.open[caller]


class Callers:
    """The shares of all callers."""

    def __init__(self, limits: Limits) -> None:
        self.sessions = Share("sessions", limits.sessions_per_caller, 30)
        self.streams = Share("streams", limits.streams_per_caller, 5)
        self.requests = Share("requests", limits.http_requests_per_caller, 1)


def caller_of(request: Request) -> str:
    """Return the name that a caller is counted under."""
    return request.principal or request.address
