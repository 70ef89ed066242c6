"""Throttle: as often as allowed, evenly refilled, and bounded in memory."""

from hypothesis import given
from hypothesis import strategies as st

from bridgehead.host.auth.throttle import Throttle
from tests.support.clock import START, Clock


def test_a_minutes_worth_may_come_at_once_and_then_one_at_a_time() -> None:
    clock = Clock()
    throttle = Throttle(clock.monotonic)

    assert [throttle.take("a", 60) for _ in range(60)] == [0.0] * 60
    assert throttle.take("a", 60) == 1.0
    clock.advance(0.5)
    assert throttle.take("a", 60) == 0.5
    clock.advance(0.5)
    assert throttle.take("a", 60) == 0.0
    assert throttle.take("a", 60) == 1.0


def test_names_do_not_share() -> None:
    throttle = Throttle(Clock().monotonic)
    assert throttle.take("a", 1) == 0.0
    assert throttle.take("b", 1) == 0.0
    assert throttle.take("a", 1) > 0


@given(st.lists(st.floats(0, 5), max_size=200), st.integers(1, 120))
def test_never_more_than_a_minutes_worth_and_what_was_refilled(pauses: list[float], per_minute: int) -> None:
    clock = Clock()
    throttle = Throttle(clock.monotonic)
    taken = 0
    for pause in pauses:
        clock.advance(pause)
        taken += throttle.take("a", per_minute) == 0.0

    assert taken <= per_minute + (clock.now() - START) * per_minute / 60 + 1e-6


def test_the_names_that_are_remembered_are_bounded() -> None:
    throttle = Throttle(Clock().monotonic, max_names=2)
    assert [throttle.take(name, 1) > 0 for name in ("a", "b", "a", "b")] == [False, False, True, True]
    for name in ("a", "b", "c"):
        throttle.take(name, 1)

    assert throttle.take("c", 1) > 0
    assert throttle.take("a", 1) == 0.0  # forgotten, and so it begins anew
