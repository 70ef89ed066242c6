"""Student's t: judged by printed tables and by its own inverse."""

import math

import pytest

from bridgehead.aoc.ranking.student_t import two_sided_p, two_sided_quantile


@pytest.mark.parametrize(
    ("p", "df", "t"),
    [
        (0.05, 1, 12.706),
        (0.05, 4, 2.776),
        (0.05, 30, 2.042),
        (0.01, 2, 9.925),
        (0.001, 10, 4.587),
        (0.05, 1e6, 1.960),
    ],
)
def test_quantiles_are_those_of_the_printed_tables(p: float, df: float, t: float) -> None:
    assert two_sided_quantile(p, df) == pytest.approx(t, abs=0.0006)


def test_one_degree_of_freedom_is_cauchys_distribution() -> None:
    for t in (0.1, 1.0, 7.5, 4000.0):
        assert two_sided_p(t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(t), rel=1e-9)


@pytest.mark.parametrize("df", [1.5, 7.3, 240.0])
@pytest.mark.parametrize("p", [0.5, 0.05, 1e-5])
def test_the_quantile_is_the_inverse_of_the_chance(p: float, df: float) -> None:
    assert two_sided_p(two_sided_quantile(p, df), df) == pytest.approx(p, rel=1e-6)


def test_a_difference_of_nothing_is_no_evidence() -> None:
    assert two_sided_p(0.0, 5) == 1.0
