"""Timing: clocks that tests set, and delays that grow up to a limit."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.runtime import timing
from bridgehead.runtime.timing import Backoff, SystemClock
from tests.support.clock import Clock


def age(clock: timing.Clock, born: float) -> float:
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
    stopped = Clock(1_700_000_000.0)

    assert age(stopped, 1_600_000_000.0) == 100_000_000.0
    assert age(SystemClock(), 1_600_000_000.0) > 100_000_000.0


def middle() -> float:
    """Draw what shakes nothing."""
    return 0.5


def test_each_delay_is_longer_than_the_one_before_until_the_most_is_reached() -> None:
    backoff = Backoff(base=0.5, limit=5.0)

    assert [backoff.delay(attempt, middle) for attempt in range(6)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(("drawn", "delay"), [(0.0, 8.0), (0.5, 10.0), (1.0, 12.0)])
def test_a_delay_is_shaken_both_ways_by_a_share_of_itself(drawn: float, delay: float) -> None:
    assert Backoff(base=10.0, limit=60.0, jitter=0.2).delay(0, lambda: drawn) == pytest.approx(delay)


def test_a_slow_growth_reaches_its_most_too() -> None:
    assert Backoff(base=0.1, limit=60.0, factor=1.05).delay(1_000, middle) == 60.0


@settings(deadline=None)
@given(
    attempt=st.integers(0, 10**6),
    drawn=st.floats(0, 1),
    factor=st.floats(1, 100),
    base=st.floats(0.001, 10),
    jitter=st.floats(0, 1),
)
def test_any_try_has_a_delay_within_bounds(
    attempt: int, drawn: float, factor: float, base: float, jitter: float
) -> None:
    backoff = Backoff(base=base, limit=10.0, factor=factor, jitter=jitter)

    delay = backoff.delay(attempt, lambda: drawn)

    assert base * (1 - jitter) * 0.999 <= delay <= 10.0 * (1 + jitter) * 1.001


@pytest.mark.parametrize("name", ["base", "most", "factor", "jitter"])
def test_delays_cannot_be_changed_after_they_were_agreed_on(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Backoff(base=1.0, limit=2.0), name, 3.0)
