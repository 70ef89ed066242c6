"""Figures: what runs come to, judged by the standard library's statistics."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.aoc.files.figures import Runs, figures, squares

TIMES = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=60)
PARTS = st.lists(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 9), max_size=20), min_size=1, max_size=6)


@given(PARTS.filter(any))
def test_the_figures_of_several_parts_are_those_of_the_standard_library(parts: list[list[int]]) -> None:
    times = [time for part in parts for time in part]

    found = figures([Runs(sorted(part)) for part in parts])

    assert (found.n, found.best) == (len(times), min(times))
    assert found.median == pytest.approx(statistics.median(times), rel=1e-15)
    assert found.mean == pytest.approx(statistics.mean(times))
    if len(times) == 1:
        assert found.stdev is None
    else:
        assert found.stdev == pytest.approx(statistics.stdev(times), rel=1e-6, abs=1e-6)


@given(TIMES, TIMES)
def test_runs_that_come_one_by_one_come_to_the_same(before: list[int], after: list[int]) -> None:
    at_once = figures([Runs(sorted(before + after))])

    runs = Runs(sorted(before))
    for time in after:
        runs.add(time)

    assert figures([runs]) == at_once


@given(st.lists(st.integers(0, 2**24), max_size=60) | TIMES)
def test_squares_are_summed_up_exactly(times: list[int]) -> None:
    assert squares(sorted(times)) == sum(time * time for time in times)


@pytest.mark.parametrize(("n", "p95"), [(19, None), (20, 19), (21, 20), (100, 95), (101, 96)])
def test_the_95th_percentile_is_given_from_twenty_runs_on(n: int, p95: int | None) -> None:
    whole = Runs(list(range(1, n + 1)))
    halves = [Runs(list(range(1, n + 1, 2))), Runs(list(range(2, n + 1, 2)))]

    assert figures([whole]).p95 == figures(halves).p95 == p95


def test_large_and_close_times_keep_their_spread() -> None:
    huge = 2**62

    spread = figures([Runs([huge, huge + 2, huge + 4])]).stdev

    assert spread is not None
    assert math.isclose(spread, 2.0)
