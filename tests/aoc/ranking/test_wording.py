"""Wording: times and ratios as people read them."""

import pytest

from bridgehead.aoc.ranking.wording import MAX_NAMES, count, dollars, duration, no_runs, ratio


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (0, "0 ms"),
        (0.5, "0.5 ms"),
        (9, "9 ms"),
        (999.4, "999 ms"),
        (999.6, "1 s"),
        (1250, "1.25 s"),
        (59_999, "1 min"),
        (168_000, "2.8 min"),
        (3_599_999, "1 h"),
        (5_400_000, "1.5 h"),
        (720_000_000, "200 h"),
    ],
)
def test_a_time_is_written_in_the_unit_that_suits_it(milliseconds: float, written: str) -> None:
    assert duration(milliseconds) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "–"), (0.0001, "<0.01×"), (1, "1.00×"), (99.994, "99.99×"), (12_345.6, "12,346×")],
)
def test_a_ratio_has_as_many_digits_as_say_something(value: float | None, written: str) -> None:
    assert ratio(value) == written


@pytest.mark.parametrize(
    ("amount", "written"),
    [(0, "$0.00"), (0.002399, "$0.0024"), (0.0099, "$0.0099"), (0.5, "$0.50"), (12.346, "$12.35")],
)
def test_an_amount_is_written_in_cents_or_with_two_digits(amount: float, written: str) -> None:
    assert dollars(amount) == written


def test_one_thing_is_not_written_as_several() -> None:
    assert (count(1, "run"), count(1200, "run")) == ("1 run", "1,200 runs")


def test_nothing_to_show_never_asks_for_a_record() -> None:
    for text in (
        no_runs(None, [], None, []),
        no_runs("a", ["b"], None, [1]),
        no_runs(None, ["b"], 3, [1]),
        no_runs("b", ["b"], None, [1]),
    ):
        assert "record_speed" not in str(text)
        assert text.text.startswith("No runs")


def test_of_very_many_known_models_some_are_named() -> None:
    note = no_runs("a", [f"m{n:04}" for n in range(3160)], None, [1]).note

    assert note is not None
    assert note.endswith(f"m{MAX_NAMES - 1:04} and 3,130 more.")
