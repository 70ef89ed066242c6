"""Retries: the delays before retries, and the circuit breaker of a service that keeps failing.

Pure: the time is an argument. The error itself says whether it is transient.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from bridgehead.runtime.timing import Backoff

from ..errors import MercuryError


class Retries(Struct, frozen=True):
    """The number of retries, and their delays."""

    limit: int
    backoff: Backoff
    draw: Callable[[], float]
    """Returns a random number below 1, so that clients that failed together do not retry together."""

    def delay(self, error: MercuryError, attempt: int, seconds_left: float) -> float | None:
        """Return the seconds before the next attempt (counted from 0); None if there is none.

        The service's Retry-After takes precedence over our backoff.
        """
        if not error.is_transient or attempt >= self.limit:
            return None
        delay = error.retry_after
        if delay is None:
            delay = min(self.backoff.delay(attempt, self.draw), self.backoff.limit)
        # A retry that could only time out is not begun.
        return delay if delay < seconds_left else None


class Breaker:
    """A circuit breaker: after some failures in a row nothing is sent for a while, and then one probe.

    Only failures of the service count, not errors in a request.
    """

    def __init__(
        self,
        failures: int,
        wait: float,
        on_change: Callable[[bool], None] = lambda _is_open: None,
    ) -> None:
        self._limit = failures
        self._wait = wait
        self._on_change = on_change
        """Called with True when it opens and with False when it closes."""
        self._failures = 0
        self._probe_at = 0.0
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Whether the service counts as down."""
        return self._failures >= self._limit

    def is_waiting(self, now: float) -> bool:
        """Return whether nothing is sent right now; after that, the next request is the probe."""
        return self.is_open and now < self._probe_at

    def delay(self, now: float) -> float:
        """Return the seconds until a request may be sent; 0 admits it, as the probe if it is open."""
        if self._failures < self._limit:
            return 0.0
        if now < self._probe_at:
            return self._probe_at - now
        # One probe at a time: a service that has just recovered must not get all waiting calls at once.
        if self._is_probing:
            return self._wait
        self._is_probing = True
        return 0.0

    def record_success(self) -> None:
        """Close the breaker: the service answered, with whatever status."""
        was_open, self._failures = self._failures >= self._limit, 0
        self._is_probing = False
        if was_open:
            self._on_change(False)  # noqa: FBT003 - the one argument there is

    def record_failure(self, now: float) -> None:
        """Count a failure of the service; open the breaker at the limit."""
        self._failures += 1
        self._is_probing = False
        if self.is_open:
            self._probe_at = now + self._wait
        if self._failures == self._limit:
            self._on_change(True)  # noqa: FBT003 - the one argument there is

    def record_nothing(self) -> None:
        """End a request that says nothing about the service; the next one may be the probe."""
        self._is_probing = False
