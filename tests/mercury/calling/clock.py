"""A clock that a test sets."""

import time

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200
DAY = 86_400.0


class GivenClock:
    def __init__(self) -> None:
        self.time = NOON
        self.monotonic = time.monotonic

    def now(self) -> float:
        return self.time
