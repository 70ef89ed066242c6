"""Quota: never more than the limit in any window, whatever is taken and corrected when."""

from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mercury.quota import Window


def test_there_is_room_until_the_limit_and_then_after_the_window() -> None:
    window = Window(2, 10.0)
    window.take(1, 0.0)
    window.take(1, 4.0)

    assert window.delay(1, 5.0) == 5.0
    assert window.delay(2, 5.0) == 9.0
    assert window.delay(1, 10.0) == 0.0
    assert window.left(10.0) == 1
    assert window.delay(3, 5.0) == 10.0  # there is never room for that


def test_what_was_not_used_is_given_back() -> None:
    window = Window(100, 10.0)
    entry = window.take(100, 0.0)
    assert window.left(1.0) == 0

    window.correct(entry, 30)

    assert window.left(1.0) == 70
    assert window.left(10.0) == 100


def test_a_correction_after_the_window_changes_nothing() -> None:
    window = Window(100, 10.0)
    entry = window.take(50, 0.0)
    assert window.is_idle(11.0)

    window.correct(entry, 0)
    window.take(100, 11.0)

    assert window.left(11.0) == 0


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, 6), st.integers(0, 6)), max_size=60))
def test_no_window_ever_holds_more_than_the_limit(steps: list[tuple[float, int, int]]) -> None:
    window, now, used = Window(10, 5.0), 0.0, []
    for pause, asked, really in steps:
        now += pause
        if window.delay(asked, now):
            continue
        entry = window.take(asked, now)
        window.correct(entry, min(asked, really))
        used.append((now, min(asked, really)))

    for start, _ in used:
        assert sum(amount for when, amount in used if start <= when < start + 5.0) <= 10
