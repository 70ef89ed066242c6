"""Board: what became of the attempts that were checked."""

import pytest

from bridgehead.aoc.files.attempts import AttemptCounts


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
