"""Comparison: a solved answer costs all the time that was spent, and ranks claim no more than is known."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.aoc.ranking.comparison import Place, Tries, cost_of, place_models, why_unranked
from tests.aoc.ranking import oracle


def tries(cells: oracle.Cells) -> dict[tuple[int, int], Tries]:
    return {
        puzzle: Tries([t for t, ok in attempts if ok], [t for t, ok in attempts if not ok])
        for puzzle, attempts in cells.items()
    }


def placed(models: dict[str, oracle.Cells]) -> dict[str, Place]:
    return {place.llm: place for place in place_models({n: tries(c) for n, c in models.items()}, "days")}


def drawn(draw: random.Random, level: float, solves: float, days: int) -> oracle.Cells:
    return {
        (day, phase): [
            (round(draw.lognormvariate(level, 1)), draw.random() < solves)
            for _ in range(draw.choice((1, 1, 2, 3)))
        ]
        for day in range(1, days + 1)
        for phase in (1, 2)
        if day <= 3 or draw.random() < 0.85
    }


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), models=st.integers(2, 6), days=st.integers(3, 12))
def test_ranks_are_those_of_an_independent_calculation(seed: int, models: int, days: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - times to rank, not secrets
    board = {
        f"m{number}": drawn(draw, 9 + draw.uniform(0, 3), draw.choice((1.0, 0.9, 0.5)), days)
        for number in range(models)
    }

    found = placed(board)

    assert {name: (place.rank, place.rank_high) for name, place in found.items()} == oracle.rank_ranges(board)
    first = next(iter(found))
    for name, place in found.items():
        shared = math.exp(oracle.log_ratio(board[first], board[name]))
        assert place.ratio == pytest.approx(shared)
        assert (place.low or 0) <= shared * 1.000001
        assert (place.high or 0) >= shared * 0.999999


def test_an_agent_that_burns_time_on_what_it_cannot_solve_is_not_first() -> None:
    """It solves half in 2 minutes and fails the rest in 30: 32 minutes for each solved answer, not 2."""
    draw = random.Random(7)  # noqa: S311 - times to rank, not secrets
    gambler, steady = {}, {}
    for day in range(1, 25):
        for phase in (1, 2):
            is_quick = (day + phase) % 2 == 0
            gambler[day, phase] = [((2 if is_quick else 30) * 60_000 * draw.uniform(0.9, 1.1), is_quick)]
            steady[day, phase] = [(10 * 60_000 * draw.uniform(0.9, 1.1), True)]

    found = placed({"gambler": gambler, "steady": steady})

    assert (found["steady"].rank, found["gambler"].rank) == (1, 2)
    assert found["gambler"].ratio == pytest.approx(3.2, rel=0.05)


def test_the_interval_of_a_ratio_leaves_out_1_exactly_where_the_ranks_differ() -> None:
    draw = random.Random(3)  # noqa: S311 - times to rank, not secrets
    for spread in (0.0, 0.3, 0.7, 1.5):
        found = placed({"a": drawn(draw, 9, 1, 8), "b": drawn(draw, 9 + spread, 1, 8)})
        second = list(found.values())[1]

        assert ((second.low or 0) > 1) is (second.rank == 2)


def test_one_long_day_is_little_evidence() -> None:
    even = {(day, 1): [(100_000.0 + day, True)] for day in range(1, 13)}
    twice = {puzzle: [(2 * time, True)] for puzzle, ((time, _),) in even.items()}
    assert placed({"a": even, "b": twice})["b"].rank == 2

    even[13, 1], twice[13, 1] = [(50_000_000.0, True)], [(60_000_000.0, True)]

    assert placed({"a": even, "b": twice})["b"].rank == 1


def test_a_failure_that_was_not_seen_yet_widens_every_interval() -> None:
    quick = {(day, 1): [(1000.0 + day, True)] for day in range(1, 10)}
    slow = {(day, 1): [(1500.0 + day, True)] for day in range(1, 10)}
    calm = placed({"quick": quick, "slow": slow})["slow"]
    third = {(day, 1): [(9000.0, True)] for day in range(1, 9)} | {(9, 1): [(1_800_000.0, False)]}

    wary = placed({"quick": quick, "slow": slow, "third": third})["slow"]

    assert (calm.rank, wary.rank) == (2, 1)


def test_models_that_share_too_few_days_are_not_compared() -> None:
    early = {(day, 1): [(1000.0 * day, True)] for day in range(1, 6)}
    late = {(day, 1): [(1000.0 * day, True)] for day in range(10, 15)}
    models = {"a": tries(early), "b": tries({**early, **late}), "c": tries(late)}

    found = {place.llm: place for place in place_models(models, "days")}

    assert why_unranked(models, "days") == {}
    apart = [name for name, place in found.items() if place.ratio is None]
    assert len(apart) == 1  # of a and c, the one that is not first
    assert {(place.rank, place.rank_high) for place in found.values()} == {(1, 3)}


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({(1, 1): [(5, True)], (1, 2): [(5, True)], (2, 1): [(5, True)]}, "fewer than 3 days"),
        ({(d, 1): [(5, d < 3)] for d in range(1, 9)}, "fewer than 3 solved answers"),
        ({(d, 1): [(5, True)] for d in range(20, 24)}, "fewer than 3 shared days"),
    ],
)
def test_a_model_without_a_rank_has_the_reason(cells: oracle.Cells, why: str) -> None:
    others = {name: tries({(d, 1): [(9, True)] for d in range(1, 9)}) for name in ("a", "b")}

    assert why_unranked({**others, "few": tries(cells)}, "days") == {"few": why}


def test_on_one_puzzle_attempts_are_compared_and_failures_cost_their_time() -> None:
    times = (100_000, 110_000, 90_000, 105_000, 95_000)
    sure = {(1, 1): Tries(times, [])}
    twice = {(1, 1): Tries([2 * time for time in times], [])}
    flaky = {(1, 1): Tries(times[:3], [1_000_000] * 4)}

    found = {
        place.llm: place for place in place_models({"flaky": flaky, "sure": sure, "twice": twice}, "attempts")
    }

    assert list(found) == ["sure", "twice", "flaky"]
    assert found["twice"].ratio == pytest.approx(2.0)
    assert found["flaky"].ratio == pytest.approx(cost_of_attempts(flaky[1, 1]) / cost_of_attempts(sure[1, 1]))


def cost_of_attempts(cell: Tries) -> float:
    n = len(cell.solved) + len(cell.failed)
    return (sum(cell.solved) + sum(cell.failed)) / n / ((len(cell.solved) + 0.5) / (n + 0.5))


def test_no_time_counts_as_half_a_millisecond() -> None:
    assert cost_of({(1, 1): Tries([0], [])}) == 0.5
