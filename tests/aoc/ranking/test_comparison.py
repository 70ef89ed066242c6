"""Comparison: ratios and the intervals around them."""

import random

import pytest

from tests.aoc.ranking.boards import board, standing


def test_the_mix_of_puzzles_does_not_decide_the_rank() -> None:
    alice = {1: [10] * 2, 2: [1000] * 18}
    bob = {1: [20] * 18, 2: [2000] * 2}

    found = board({"alice": alice, "bob": bob})

    assert standing(found) == [(1, "alice"), (2, "bob")]
    assert found.rows[1].slower == pytest.approx(2.0)
    assert not any(row.provisional for row in found.rows)


def test_intervals_hold_what_they_promise() -> None:
    draw = random.Random(7)  # noqa: S311 - the same times in each run
    covered = 0
    for number in range(60):
        fast = [round(draw.lognormvariate(5, 0.3)) for _ in range(40)]
        slow = [round(draw.lognormvariate(5, 0.3) * 1.5) for _ in range(40)]
        rows = board({f"fast{number}": {1: fast}, f"slow{number}": {1: slow}}).rows
        low, high = rows[1].low, rows[1].high
        assert low is not None
        assert high is not None
        covered += low <= 1.5 <= high
    assert covered >= 50  # 95 % of 60 are 57
