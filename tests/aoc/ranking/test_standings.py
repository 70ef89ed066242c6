"""Standings: which runs and failures count, who is compared with whom, and who is not ranked."""

import random
import time

import pytest

from bridgehead.aoc.ranking.standings import MAX_MODELS, MAX_RANKED, TOO_MANY
from tests.aoc.ranking.boards import Times, board, failed, rank_ranges


def noisy(base: float, days: range, seed: int, runs: int = 1) -> dict[int, list[int]]:
    draw = random.Random(seed)  # noqa: S311 - the same times in each run
    return {day: [round(base * (day + 9) * draw.lognormvariate(0, 0.2)) for _ in range(runs)] for day in days}


DAYS = range(1, 11)


def test_models_with_fewer_than_three_days_are_listed_without_a_rank() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(110, DAYS, 2), "few": {1: [1] * 50, 2: [1] * 50}}

    found = board(models)

    assert rank_ranges(found)[-1] == ("few", "fewer than 3 days")
    assert (found.rows[-1].slower, found.rows[-1].rank, found.rows[-1].best) == (None, None, 1)


def test_models_without_a_rank_come_by_what_a_solved_answer_costs_them() -> None:
    few = {name: {1: [base], 2: [base]} for name, base in (("a", 90_000), ("z", 10), ("m", 500))}

    found = board({"x": noisy(100, DAYS, 1), "y": noisy(300, DAYS, 2), **few}, [failed("z", 3, 10_000_000)])

    assert [row.llm for row in found.rows if row.rank is None] == ["m", "a", "z"]
    assert found.rows[2].per_solved == 500


def test_on_one_puzzle_five_attempts_each_are_compared_and_fewer_are_not() -> None:
    same = [100, 101, 102, 103, 104]
    found = board({"a": {1: same}, "b": {1: [9 * t for t in same]}, "c": {1: [2, 2]}, "d": {1: same, 2: [1]}})

    assert rank_ranges(found) == [
        ("a", "1-2"),
        ("d", "1-2"),
        ("b", "3-3"),
        ("c", "fewer than 5 attempts at a puzzle"),
    ]
    assert found.unit == "attempts"


def test_the_same_records_give_the_same_board_in_any_order() -> None:
    draw = random.Random(1)  # noqa: S311 - the same times in each run
    models: Times = {
        f"m{number}": {day: [draw.randrange(1, 10_000) for _ in range(7)] for day in range(1, 6)}
        for number in range(6)
    }
    shuffled = dict(sorted(models.items(), key=lambda _: draw.random()))

    assert board(models) == board(shuffled) == board(models)


# --- failures ----------------------------------------------------------------------------------------------


def test_a_failure_costs_its_time_and_is_counted_beside_what_was_solved() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(100, DAYS, 2)}
    slow = [failed("b", day, 9_000_000, wrong=2) for day in range(11, 21)]

    found = board({**models, "a": {**models["a"], **noisy(100, range(11, 21), 3)}}, slow)

    assert [(row.llm, row.solved, row.failed, row.wrong) for row in found.rows] == [
        ("a", 20, 0, 0),
        ("b", 10, 10, 20),
    ]
    assert (found.rows[1].solve_rate, found.rows[1].puzzles) == (0.5, 20)
    assert (found.rows[1].slower or 0) > 1000


def test_an_abandoned_attempt_takes_as_long_as_the_longest_failed_one() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(100, DAYS, 2), "c": noisy(100, DAYS, 3)}
    slow = failed("a", 11, 7_000_000)

    quit_it = board(models, [slow, failed("b", 11, None)])
    spent_it = board(models, [slow, failed("b", 11, 7_000_000)])

    assert quit_it == spent_it


def test_an_attempt_counts_only_for_a_grade_that_it_could_have_reached() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(100, DAYS, 2)}
    seen_before = failed("b", 11, 9_000_000, "claimed")

    assert board(models, [seen_before]).rows[:2] == board(models).rows


@pytest.mark.parametrize("attempt", ["bench-0a1b-1", "run"])
def test_failures_that_version_0_3_saw_itself_count_though_it_wrote_them_as_claimed(attempt: str) -> None:
    measure = "execution" if attempt == "run" else "solving"
    end = failed("b", 11, 9_000_000, "claimed", measure=measure)
    end.step.attempt = attempt

    (row,) = board({}, [end]).rows

    assert (row.llm, row.failed, row.unranked) == ("b", 1, "nothing solved")


def test_a_model_that_solved_nothing_comes_last() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(300, DAYS, 2)}

    found = board(models, [failed("hopeless", day, 5000, wrong=day) for day in (1, 2, 3)])

    assert rank_ranges(found)[-1] == ("hopeless", "nothing solved")
    assert (found.rows[-1].solved, found.rows[-1].failed, found.rows[-1].wrong) == (0, 3, 6)
    assert found.rows[-1].per_solved is None


def test_by_solve_rate_the_surest_come_first_and_equals_share_their_ranks() -> None:
    models = {name: noisy(100, DAYS, seed) for seed, name in enumerate(("fast", "sure", "safe"))}
    ends = [failed("fast", day, 5, tokens=100) for day in DAYS] + [failed("hopeless", 1, 5, cost_usd=0.5)]

    found = board(models, ends, claimed={"liar": noisy(1, DAYS, 9)}, order="solve_rate")

    ranks = dict(rank_ranges(found))
    assert ranks == {"sure": "1-2", "safe": "1-2", "fast": "3-3", "hopeless": "4-4", "liar": "claimed"}
    assert [(row.tokens, row.cost_usd) for row in found.rows[2:4]] == [(100.0, None), (None, 0.5)]


# --- grades ------------------------------------------------------------------------------------------------


def test_claimed_times_are_listed_and_never_ranked_beside_better_ones() -> None:
    models = {"a": noisy(100, DAYS, 1), "b": noisy(300, DAYS, 2)}
    lies = {"liar": {day: [3] * 9 for day in DAYS}, "a": {1: [1]}}

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
