"""Board: which runs a question is about, and what became of the attempts that were checked."""

import pytest
from msgspec import UNSET

from bridgehead.aoc.ranking.board import AttemptCounts, Filters, make_filters


def test_an_argument_that_is_missing_or_empty_lets_every_run_count() -> None:
    assert make_filters() == make_filters(day=0, phase=0, llm="") == Filters()
    assert make_filters(UNSET, UNSET, UNSET, UNSET, "solve_rate") == Filters(order="solve_rate")


def test_an_argument_that_is_given_narrows_the_question() -> None:
    assert make_filters(3, 2, "gpt4", "execution") == Filters(3, 2, "gpt4", "execution", "speed")
    assert make_filters(grade="verified").grade == "verified"


@pytest.mark.parametrize(
    ("counts", "rate"),
    [
        (AttemptCounts(attempts=4, solved=3, failed=1), 0.75),
        (AttemptCounts(attempts=9, solved=1), 1.0),
        (AttemptCounts(attempts=2, failed=2), 0.0),
        (AttemptCounts(attempts=5), None),
    ],
)
def test_attempts_that_nobody_could_check_count_neither_as_solved_nor_as_failed(
    counts: AttemptCounts, rate: float | None
) -> None:
    assert counts.solve_rate == rate
