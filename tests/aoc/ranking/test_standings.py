"""Standings: which runs count, who is compared with whom, and who is not ranked."""

import random
import time

import pytest

from bridgehead.aoc.files.attempts import AttemptCounts
from bridgehead.aoc.ranking.standings import MAX_MODELS, MAX_RANKED, TOO_MANY
from tests.aoc.ranking.boards import Times, board, rank_ranges, tried


def noisy(base: float, days: range, seed: int, runs: int = 1) -> dict[int, list[int]]:
    draw = random.Random(seed)  # noqa: S311 - the same times in each run
    return {day: [round(base * day * draw.lognormvariate(0, 0.2)) for _ in range(runs)] for day in days}


DAYS = range(1, 11)


def test_the_mix_of_puzzles_does_not_decide_the_rank() -> None:
    alice = {1: [10] * 2, 2: [1000] * 18, 3: [100] * 3, 4: [50] * 2}
    bob = {1: [20] * 18, 2: [2000] * 2, 3: [200] * 4, 4: [100] * 9}

    found = board({"alice": alice, "bob": bob})

    assert rank_ranges(found) == [("alice", "1-1"), ("bob", "2-2")]
    assert found.rows[1].slower == pytest.approx(2.0)


def test_models_with_fewer_than_three_puzzles_are_listed_without_a_rank() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(110, DAYS, 2), "few": {1: [1] * 50, 2: [1] * 50}}

    found = board(models)

    assert rank_ranges(found)[-1] == ("few", "too few puzzles")
    assert (found.rows[-1].slower, found.rows[-1].rank, found.rows[-1].best) == (None, None, 1)


def test_a_puzzle_that_one_model_ran_counts_for_nobody() -> None:
    brave = {**noisy(100, DAYS, 1), 20: [90_000_000]}

    with_hard = board({"brave": brave, "meek": noisy(150, DAYS, 2)})
    without = board({"brave": noisy(100, DAYS, 1), "meek": noisy(150, DAYS, 2)})

    assert [row.slower for row in with_hard.rows] == [row.slower for row in without.rows]
    assert with_hard.rows[0].puzzles == 11


def test_dropping_goes_on_until_nothing_changes() -> None:
    """Without c, puzzle 4 has b alone; without it b has two puzzles; without b, a has none."""
    models: Times = {
        "a": {1: [10], 2: [10], 5: [10]},
        "b": {1: [10], 2: [10], 4: [10]},
        "c": {4: [10], 6: [10]},
        "d": {5: [10], 6: [10], 7: [10]},
    }

    assert {why for _, why in rank_ranges(board(models))} <= {"too few puzzles", "too few shared puzzles"}


def test_models_that_share_no_puzzle_are_boards_of_their_own() -> None:
    early = {name: noisy(base, range(1, 8), base) for name, base in (("a", 10), ("b", 100), ("c", 1000))}
    late = {name: noisy(base, range(11, 18), base) for name, base in (("x", 1), ("y", 50))}

    found = board({**early, **late})

    assert [(row.llm, row.group, row.rank) for row in found.rows] == [
        ("a", 1, 1),
        ("b", 1, 2),
        ("c", 1, 3),
        ("x", 2, 1),
        ("y", 2, 2),
    ]
    assert [row.slower for row in found.rows if row.rank == 1] == [1.0, 1.0]


def test_groups_that_one_model_connects_are_one() -> None:
    early = {name: noisy(base, range(1, 8), base) for name, base in (("a", 10), ("b", 100))}
    late = {name: noisy(base, range(11, 18), base) for name, base in (("x", 10), ("y", 100))}
    both = {"z": {**noisy(10, range(1, 8), 5), **noisy(10, range(11, 18), 6)}}

    assert {row.group for row in board({**early, **late, **both}).rows} == {1}


def test_on_one_puzzle_three_runs_each_are_compared_and_fewer_are_not() -> None:
    found = board({"a": {1: [100, 101, 102]}, "b": {1: [900, 905, 910]}, "c": {1: [2, 2]}})

    assert rank_ranges(found) == [("a", "1-1"), ("b", "2-2"), ("c", "too few runs")]
    assert found.unit == "runs"


def test_one_run_has_no_rank() -> None:
    found = board({"a": {1: [5]}, "b": {1: [500]}})

    assert rank_ranges(found) == [("a", "too few runs"), ("b", "too few runs")]


def test_a_noisy_leader_does_not_put_200_and_1600_ms_on_one_rank() -> None:
    draw = random.Random(4)  # noqa: S311 - the same times in each run
    wild = {day: [round(180 * day * draw.lognormvariate(0, 1.2)) for _ in range(3)] for day in range(1, 9)}

    found = board(
        {
            "wild": wild,
            "quick": noisy(200, range(1, 9), 1, 3),
            "slow": noisy(1600, range(1, 9), 2, 3),
        }
    )

    rows = {row.llm: row for row in found.rows}
    assert (rows["quick"].rank_high or 9) < (rows["slow"].rank or 0)


def test_the_same_records_give_the_same_board_in_any_order() -> None:
    draw = random.Random(1)  # noqa: S311 - the same times in each run
    models: Times = {
        f"m{number}": {day: [draw.randrange(1, 10_000) for _ in range(7)] for day in range(1, 6)}
        for number in range(6)
    }
    shuffled = dict(sorted(models.items(), key=lambda _: draw.random()))

    assert board(models) == board(shuffled) == board(models)


# --- failures ----------------------------------------------------------------------------------------------


def test_a_model_that_solved_5_of_50_is_not_above_one_that_solved_6_of_6() -> None:
    days = range(1, 7)
    sniper = {day: times for day, times in noisy(30, days, 1).items() if day < 6}
    attempts = {
        "sniper": tried({day: int(day < 6) for day in range(1, 7)}, 9),
        "sure": tried(dict.fromkeys(days, 1), 1),
    }

    by_time = board({"sniper": sniper, "sure": noisy(100, days, 2)})
    found = board({"sniper": sniper, "sure": noisy(100, days, 2)}, attempts)

    assert by_time.rows[0].llm == "sniper"
    assert found.rows[0].llm == "sure"
    assert found.counts_failures
    assert [(row.solved, row.attempts) for row in found.rows] == [(6, 6), (5, 54)]


def test_failures_count_for_none_if_a_ranked_model_has_no_attempts() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(300, DAYS, 2)}
    attempts = {"a": tried(dict.fromkeys(DAYS, 1), 9)}

    found = board(models, attempts)

    assert not found.counts_failures
    assert [row.slower for row in found.rows] == [row.slower for row in board(models).rows]


def test_a_model_that_solved_nothing_comes_last() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(300, DAYS, 2)}

    found = board(models, {"hopeless": tried(dict.fromkeys(DAYS, 0), 1, wrong=12)})

    assert rank_ranges(found)[-1] == ("hopeless", "nothing solved")
    assert (found.rows[-1].solved, found.rows[-1].attempts, found.rows[-1].wrong) == (0, 10, 12)


def test_by_solve_rate_the_surest_come_first_and_equals_share_their_ranks() -> None:
    models = {name: noisy(100, DAYS, seed) for seed, name in enumerate(("fast", "sure", "safe", "new"))}
    attempts = {
        "fast": AttemptCounts(attempts=10, solved=5, failed=5),
        "sure": AttemptCounts(attempts=5, solved=5),
        "safe": AttemptCounts(attempts=9, solved=9),
        "hopeless": AttemptCounts(attempts=3, failed=3, tokens=100.0, cost_usd=0.5),
    }

    found = board(models, attempts, order="solve_rate")

    ranks = dict(rank_ranges(found))
    assert ranks == {"sure": "1-2", "safe": "1-2", "fast": "3-3", "hopeless": "4-4", "new": "no attempts"}
    assert found.rows[-1].llm == "new"


# --- grades ------------------------------------------------------------------------------------------------


def test_claimed_times_are_listed_and_never_ranked_beside_better_ones() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(300, DAYS, 2)}
    lies = {"liar": {day: [1] * 9 for day in DAYS}, "a": {1: [1]}}

    found = board(models, claimed=lies)

    assert rank_ranges(found) == [("a", "1-1"), ("b", "2-2"), ("a", "claimed"), ("liar", "claimed")]
    assert [row.slower for row in found.rows[:2]] == [row.slower for row in board(models).rows]
    assert [(row.measured, row.claimed) for row in found.rows] == [(10, 0), (10, 0), (0, 1), (0, 90)]


def test_where_there_is_nothing_else_claimed_times_are_a_board_that_says_so() -> None:
    found = board({}, claimed={"a": noisy(100, DAYS, 1), "b": noisy(300, DAYS, 2)})

    assert (found.grade, rank_ranges(found)) == ("claimed", [("a", "1-1"), ("b", "2-2")])


def test_verified_and_measured_times_are_ranked_together_or_each_alone() -> None:
    measured = {"a": noisy(100, DAYS, 1), "b": noisy(300, DAYS, 2)}
    verified = {"a": noisy(100, DAYS, 3), "c": noisy(900, DAYS, 4)}

    together = board(measured, verified=verified)
    alone = board(measured, verified=verified, grade="verified")

    assert [(row.llm, row.verified, row.measured) for row in together.rows] == [
        ("a", 10, 10),
        ("b", 0, 10),
        ("c", 10, 0),
    ]
    assert (together.grade, alone.grade) == (None, "verified")
    assert [(row.llm, row.verified) for row in alone.rows] == [("a", 10), ("c", 10)]


# --- size --------------------------------------------------------------------------------------------------


def test_thousands_of_invented_names_do_not_make_the_work_grow() -> None:
    real = {name: noisy(base, range(1, 26), base) for name, base in (("a", 100), ("b", 800))}
    invented: Times = {f"name-{number}": {1: [5], 2: [6], 3: [7]} for number in range(3000)}

    began = time.process_time()
    found = board({**real, **invented})
    spent = time.process_time() - began

    ranked = [row.llm for row in found.rows if row.rank is not None]
    assert len(ranked) == MAX_RANKED
    assert {"a", "b"} <= set(ranked)
    assert sum(row.unranked == TOO_MANY for row in found.rows) == MAX_MODELS - MAX_RANKED
    assert found.left_out == 3002 - MAX_MODELS
    assert spent < 5.0  # a tenth of that on an idle machine; comparing all of them would take hours


def test_three_hundred_thousand_runs_are_ranked_in_a_moment() -> None:
    draw = random.Random(5)  # noqa: S311 - the same times in each run
    models: Times = {
        f"m{number}": {day: sorted(draw.choices(range(1, 100_000), k=1000)) for day in range(1, 26)}
        for number in range(12)
    }

    began = time.process_time()
    board(models)

    assert time.process_time() - began < 2.0  # a tenth of that on an idle machine
