"""Standings: who is ahead of whom, and how sure that is."""

import random
import time

import pytest

from bridgehead.aoc.ranking.board import AttemptCounts
from tests.aoc.ranking.boards import Times, board, standing


def test_a_single_fast_run_does_not_take_the_first_rank() -> None:
    found = board({"steady": {1: [100, 101, 102, 103, 104]}, "lucky": {1: [2]}})

    assert standing(found) == [(1, "steady"), (2, "lucky")]
    assert [row.provisional for row in found.rows] == [False, True]
    assert found.rows[1].slower == pytest.approx(2 / 102)


def test_where_nobody_has_enough_runs_the_fastest_is_first_and_everybody_provisional() -> None:
    found = board({"a": {1: [5]}, "b": {1: [500]}})

    assert standing(found) == [(1, "a"), (2, "b")]
    assert all(row.provisional for row in found.rows)


def test_a_model_that_shares_few_puzzles_with_the_leader_is_provisional() -> None:
    full = {day: [100] * 3 for day in range(1, 11)}
    few = {day: [90] * 3 for day in range(1, 4)}

    found = board({"full": full, "few": few})

    assert [(row.llm, row.shared, row.provisional) for row in found.rows] == [
        ("full", 10, False),
        ("few", 3, True),
    ]


def test_one_easy_puzzle_does_not_make_a_leader() -> None:
    models: Times = {f"m{number}": {day: [100 + number] * 2 for day in range(1, 11)} for number in range(3)}

    found = board({**models, "specialist": {1: [1] * 10}})

    assert found.rows[0].llm == "m0"
    assert (found.rows[-1].llm, found.rows[-1].provisional) == ("specialist", True)


def test_hard_puzzles_that_only_one_model_ran_do_not_count_against_it() -> None:
    brave = {**{day: [100] * 5 for day in (1, 2)}, 3: [90_000] * 5}
    meek = {day: [150] * 5 for day in (1, 2)}

    found = board({"brave": brave, "meek": meek})

    assert standing(found) == [(1, "brave"), (2, "meek")]
    assert found.rows[1].slower == pytest.approx(1.5)
    assert not found.is_even


def test_without_a_shared_puzzle_there_is_no_ratio() -> None:
    found = board({"a": {1: [5] * 6}, "b": {2: [5] * 5}})

    assert [(row.llm, row.slower, row.provisional) for row in found.rows] == [
        ("a", 1.0, False),
        ("b", None, True),
    ]


def test_a_rank_is_shared_with_the_first_of_it_and_not_by_a_chain_of_neighbours() -> None:
    draw = random.Random(3)  # noqa: S311 - the same times in each run
    models: Times = {
        f"m{step}": {1: [round(1000 * 1.1**step * draw.uniform(0.9, 1.1)) for _ in range(20)]}
        for step in range(8)
    }

    ranks = [row.rank for row in board(models).rows]

    assert ranks == sorted(ranks)
    assert ranks[0] == 1
    assert len(set(ranks)) > 2


def test_the_same_records_give_the_same_board_in_any_order() -> None:
    draw = random.Random(1)  # noqa: S311 - the same times in each run
    models: Times = {
        f"m{number}": {day: [draw.randrange(1, 10_000) for _ in range(7)] for day in range(1, 6)}
        for number in range(6)
    }
    shuffled = dict(sorted(models.items(), key=lambda _: draw.random()))

    assert board(models) == board(shuffled) == board(models)


def test_attempts_stand_beside_the_times_and_can_come_first() -> None:
    times: Times = {"fast": {1: [10] * 5}, "sure": {1: [50] * 5}}
    attempts = {
        "fast": AttemptCounts(attempts=10, solved=5, failed=5),
        "sure": AttemptCounts(attempts=5, solved=5),
        "hopeless": AttemptCounts(attempts=3, failed=3, tokens=100.0, cost_usd=0.5),
    }

    by_speed, by_rate = board(times, attempts), board(times, attempts, order="solve_rate")

    assert standing(by_speed) == [(1, "fast"), (2, "sure"), (3, "hopeless")]
    assert standing(by_rate) == [(1, "sure"), (2, "fast"), (3, "hopeless")]
    assert [row.solve_rate for row in by_rate.rows] == [1.0, 0.5, 0.0]
    assert (by_rate.rows[2].n, by_rate.rows[2].median, by_rate.rows[2].tokens) == (0, None, 100.0)


def test_three_hundred_thousand_runs_are_ranked_in_a_moment() -> None:
    draw = random.Random(5)  # noqa: S311 - the same times in each run
    models: Times = {
        f"m{number}": {day: sorted(draw.choices(range(1, 100_000), k=1000)) for day in range(1, 26)}
        for number in range(12)
    }

    began = time.process_time()
    board(models)

    assert time.process_time() - began < 2.0  # a tenth of that on an idle machine
