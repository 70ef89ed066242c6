"""Retries: when a failed request is sent again, and when a failing service is left alone.

Pure: the time is an argument. Whether a failure can pass is the error's to say.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from bridgehead.runtime.timing import Backoff

from ..errors import MercuryError


class Retries(Struct, frozen=True):
    """How often a request is sent again, and how long to wait before."""

    most: int
    backoff: Backoff
    draw: Callable[[], float]
    """Returns a random number below 1, so that clients that failed together do not come back together."""

    def delay(self, error: MercuryError, tries: int, seconds_left: float) -> float | None:
        """Return how long to wait before the next try; None where there is none.

        As long as the service says, in any form of Retry-After, or else longer each time.
        """
        if not error.is_transient or tries >= self.most:
            return None
        delay = error.retry_after
        if delay is None:
            delay = min(self.backoff.delay(tries, self.draw), self.backoff.limit)
        return delay if delay < seconds_left else None


class Breaker:
    """Counts failures in a row; from a number of them on, nothing is sent for a while, and then one probe.

    Only failures of the service count; what is wrong with a request does not.
    """

    def __init__(
        self,
        failures: int,
        wait: float,
        on_change: Callable[[bool], None] = lambda _is_open: None,
        on_probe: Callable[[], None] = lambda: None,
    ) -> None:
        self._allowed = failures
        self._wait = wait
        self._on_change = on_change
        """Hears when it opens (True) and when it closes."""
        self._on_probe = on_probe
        """Hears when one request is let through to find out."""
        self._failures = 0
        self._probe_at = 0.0
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Whether the service counts as down."""
        return self._failures >= self._allowed

    def is_waiting(self, now: float) -> bool:
        """Tell whether the service is left alone right now; after that, the next request finds out."""
        return self.is_open and now < self._probe_at

    def delay(self, now: float) -> float:
        """Return the seconds until a request may be sent; 0 lets it through, as a probe if need be."""
        if not self.is_open:
            return 0.0
        if now < self._probe_at:
            return self._probe_at - now
        if self._is_probing:
            return self._wait
        self._is_probing = True
        self._on_probe()
        return 0.0

    def record_success(self) -> None:
        """Note that the service answered, whatever it said."""
        was_open, self._failures = self.is_open, 0
        self._is_probing = False
        if was_open:
            self._on_change(False)  # noqa: FBT003 - the one argument there is

    def record_failure(self, now: float) -> None:
        """Note that the service is down."""
        self._failures += 1
        self._is_probing = False
        if self.is_open:
            self._probe_at = now + self._wait
        if self._failures == self._allowed:
            self._on_change(True)  # noqa: FBT003 - the one argument there is

    def follow(self, seconds: float, now: float) -> None:
        """Do as another replica does: leave the service alone for a while, or use it again."""
        if seconds > 0:
            self._failures = max(self._failures, self._allowed)
            self._probe_at = max(self._probe_at, now + seconds)
        else:
            self._failures, self._is_probing = 0, False

    def record_nothing(self) -> None:
        """Note that a request ended without telling anything; another one may find out."""
        self._is_probing = False
