"""Clock: the machine's own, and one that a test sets, are used alike."""

import time

from bridgehead.runtime.clock import Clock, SystemClock


class Stopped:
    def now(self) -> float:
        return 1_700_000_000.0

    def monotonic(self) -> float:
        return 5.0


def age(clock: Clock, born: float) -> float:
    return clock.now() - born


def test_the_system_clock_tells_the_time_of_the_day() -> None:
    before = time.time()

    assert before <= SystemClock().now() <= time.time()


def test_the_system_clock_measures_without_going_back() -> None:
    clock = SystemClock()

    readings = [clock.monotonic() for _ in range(100)]

    assert readings == sorted(readings)
    assert readings[0] <= time.monotonic()


def test_what_takes_a_clock_takes_a_stopped_one() -> None:
    assert age(Stopped(), 1_600_000_000.0) == 100_000_000.0
    assert age(SystemClock(), 1_600_000_000.0) > 100_000_000.0
