"""The clock of the tests: it stands still until a test moves it."""

import time

START = 1_800_000_000.0
"""The time of day at which a clock begins unless a test says otherwise (January 2027)."""


class Clock:
    """A clock for everything that takes one, and `now` or `monotonic` for what takes a function.

    The two begin at different figures, so code that mixes them up fails. With `runs`, the system's time
    passes too, for tests in which real sockets wait. With `step`, every reading takes that many seconds.
    """

    def __init__(self, now: float = START, *, runs: bool = False, step: float = 0.0) -> None:
        self._runs = runs
        self._step = step
        self._passed = 0.0
        """Seconds that the test let pass."""
        self._offset = now - (time.monotonic() if runs else 1000.0)
        """From the monotonic time to the time of day."""
        self.slept: list[float] = []
        """How long each `sleep` was to take."""

    def now(self) -> float:
        """Return the time of day."""
        return self.monotonic() + self._offset

    def monotonic(self) -> float:
        """Return what durations are measured with."""
        self._passed += self._step
        return (time.monotonic() if self._runs else 1000.0) + self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    def set(self, now: float) -> None:
        """Set the time of day, as a person does: no time passes."""
        self._offset = now - self.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let the time pass at once, in place of `time.sleep`."""
        self.slept.append(seconds)
        self.advance(seconds)
