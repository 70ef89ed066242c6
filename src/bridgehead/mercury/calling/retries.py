"""Retries: when a failed request is sent again, and the circuit breaker of a service that keeps failing.

Pure: the time is an argument. Whether a failure can pass is the error's to say.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from bridgehead.runtime.timing import Backoff

from ..errors import MercuryError


class Retries(Struct, frozen=True):
    """How often a request is sent again, and after which delay."""

    limit: int
    backoff: Backoff
    draw: Callable[[], float]
    """Returns a random number below 1, so that clients that failed together do not come back together."""

    def delay(self, error: MercuryError, attempt: int, seconds_left: float) -> float | None:
        """Return the seconds before the next attempt, counted from 0; None if there is none.

        The service's own Retry-After comes before our backoff.
        """
        if not error.is_transient or attempt >= self.limit:
            return None
        delay = error.retry_after
        if delay is None:
            delay = min(self.backoff.delay(attempt, self.draw), self.backoff.limit)
        return delay if delay < seconds_left else None


class Breaker:
    """A circuit breaker: after some failures in a row nothing is sent for a while, and then one probe.

    Only failures of the service count; what is wrong with a request does not.
    """

    def __init__(
        self,
        failures: int,
        wait: float,
        on_change: Callable[[bool], None] = lambda _is_open: None,
        on_probe: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit = failures
        self._wait = wait
        self._on_change = on_change
        """Called with True when it opens and with False when it closes."""
        self._on_probe = on_probe
        """Called when it lets a probe through."""
        self._failures = 0
        self._probe_at = 0.0
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Whether the service counts as down."""
        return self._failures >= self._limit

    def is_waiting(self, now: float) -> bool:
        """Tell whether nothing is sent right now; after that, the next request is the probe."""
        return self.is_open and now < self._probe_at

    def delay(self, now: float) -> float:
        """Return the seconds until a request may be sent; 0 lets it through, as the probe if it is open."""
        if self._failures < self._limit:
            return 0.0
        if now < self._probe_at:
            return self._probe_at - now
        if self._is_probing:
            return self._wait
        self._is_probing = True
        self._on_probe()
        return 0.0

    def record_success(self) -> None:
        """Close it: the service answered, whatever it said."""
        was_open, self._failures = self._failures >= self._limit, 0
        self._is_probing = False
        if was_open:
            self._on_change(False)  # noqa: FBT003 - the one argument there is

    def record_failure(self, now: float) -> None:
        """Count a failure of the service, and open it at the limit."""
        self._failures += 1
        self._is_probing = False
        if self.is_open:
            self._probe_at = now + self._wait
        if self._failures == self._limit:
            self._on_change(True)  # noqa: FBT003 - the one argument there is

    def adopt(self, seconds: float, now: float) -> None:
        """Follow another replica: stay open for some seconds, or close if there are none."""
        if seconds > 0:
            self._failures = max(self._failures, self._limit)
            self._probe_at = max(self._probe_at, now + seconds)
        else:
            self._failures, self._is_probing = 0, False

    def record_nothing(self) -> None:
        """End a request that says nothing about the service; the next one may be the probe."""
        self._is_probing = False
