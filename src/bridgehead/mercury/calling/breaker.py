"""Breaker: leaves a service alone that keeps failing, and lets one request find out whether it is back.

Pure: the time is an argument. Only failures of the service count; what is wrong with a request does not.
"""

from __future__ import annotations


class Breaker:
    """Counts failures in a row; from a number of them on, nothing is let through for a while."""

    def __init__(self, failures: int, wait: float) -> None:
        self._allowed = failures
        self._wait = wait
        self._failures = 0
        self._opens_at = 0.0
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Tell whether the service counts as down."""
        return self._failures >= self._allowed

    def delay(self, now: float) -> float:
        """Give the seconds to wait before a request may go out; 0 lets it through, as a probe if need be."""
        if not self.is_open:
            return 0.0
        if now < self._opens_at:
            return self._opens_at - now
        if self._is_probing:
            return self._wait
        self._is_probing = True
        return 0.0

    def succeeded(self) -> None:
        """Note that the service answered, whatever it said."""
        self._failures = 0
        self._is_probing = False

    def failed(self, now: float) -> None:
        """Note that the service is down."""
        self._failures += 1
        self._is_probing = False
        if self.is_open:
            self._opens_at = now + self._wait

    def unknown(self) -> None:
        """Note that a request ended without telling anything; another one may find out."""
        self._is_probing = False
