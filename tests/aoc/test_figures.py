"""Figures: what runs come to, judged by the standard library's statistics."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.aoc.figures import Runs, figures

TIMES = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=60)


@given(TIMES)
def test_the_figures_are_those_of_the_standard_library(times: list[int]) -> None:
    found = figures(list(times))

    assert (found.n, found.best) == (len(times), min(times))
    assert float(found.median) == statistics.median(times)
    assert found.mean == pytest.approx(statistics.mean(times))
    if len(times) == 1:
        assert found.stdev is None
    else:
        assert found.stdev == pytest.approx(statistics.stdev(times), rel=1e-6, abs=1e-6)


@given(TIMES, TIMES)
def test_runs_that_come_one_by_one_come_to_the_same(before: list[int], after: list[int]) -> None:
    runs = Runs(before)
    for time in after:
        runs.add(time)

    one_by_one, at_once = runs.figures, figures(before + after)

    assert (one_by_one.n, one_by_one.best, one_by_one.median) == (at_once.n, at_once.best, at_once.median)
    assert one_by_one.mean == pytest.approx(at_once.mean)
    assert at_once.stdev is not None
    assert one_by_one.stdev == pytest.approx(at_once.stdev, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("n", "p95"), [(19, None), (20, 19), (21, 20), (100, 95), (101, 96)])
def test_the_95th_percentile_is_given_from_twenty_runs_on(n: int, p95: int | None) -> None:
    assert figures(list(range(n, 0, -1))).p95 == p95


def test_large_and_close_times_keep_their_spread() -> None:
    huge = 2**62

    spread = Runs([huge, huge + 2, huge + 4]).figures.stdev

    assert spread is not None
    assert math.isclose(spread, 2.0)
