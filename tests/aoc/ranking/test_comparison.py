"""Comparison: each sentence of the rule, on boards whose truth is known."""

import math
import random
from collections.abc import Iterator

import pytest

from bridgehead.aoc.files.attempts import Tries
from bridgehead.aoc.files.filters import Puzzle
from bridgehead.aoc.ranking.comparison import (
    Fit,
    count_failures,
    cut_extremes,
    estimate_noise,
    failure_costs,
    fit_puzzles,
    fit_runs,
    invert,
    place_models,
    share_noise,
    sure_pairs,
)
from bridgehead.aoc.ranking.student_t import two_sided_quantile

Logs = dict[str, dict[Puzzle, float]]


def drawn(draw: random.Random, speeds: dict[str, float], puzzles: int, noise: float = 0.4) -> Logs:
    """Draw one cell for each model and puzzle."""
    difficulty = [draw.gauss(8, 1) for _ in range(puzzles)]
    return {
        llm: {(number, 1): speed + difficulty[number] + draw.gauss(0, noise) for number in range(puzzles)}
        for llm, speed in speeds.items()
    }


def fitted(logs: Logs) -> Fit:
    fit = fit_puzzles(logs)
    assert fit is not None
    return fit


def boards(count: int, speeds: dict[str, float], puzzles: int) -> Iterator[Logs]:
    draw = random.Random(11)  # noqa: S311 - the same boards in each run
    return (drawn(draw, speeds, puzzles) for _ in range(count))


def test_where_all_puzzles_are_shared_the_comparison_is_the_paired_t() -> None:
    logs: Logs = {
        "a": {(1, 1): 1.0, (2, 1): 5.0, (3, 1): 2.0, (4, 1): 3.0},
        "b": {(1, 1): 1.6, (2, 1): 5.1, (3, 1): 2.9, (4, 1): 3.4},
    }
    fit = fitted(logs)

    assert fit.speed[1] - fit.speed[0] == pytest.approx(0.5)
    assert fit.error(0, 1) == pytest.approx(math.sqrt((fit.noise[0] + fit.noise[1]) / 4))
    # The differences 0.6, 0.1, 0.9 and 0.4 have the variance 0.34 / 3, and each of two models has half of it.
    assert fit.noise == pytest.approx([0.34 / 3 / 2] * 2)


def test_missing_cells_are_judged_by_the_difficulty_of_the_puzzles_that_were_run() -> None:
    easy: Logs = {llm: {(day, 1): 2.0 + day for day in range(6)} for llm in ("a", "b", "c")}
    hard_only = {puzzle: value + 0.7 for puzzle, value in easy["a"].items() if puzzle[0] >= 3}

    fit = fitted({**easy, "hard": hard_only})

    assert fit.speed[3] - fit.speed[0] == pytest.approx(0.7)


def test_equal_models_are_told_apart_on_at_most_one_board_in_twenty() -> None:
    equal = dict.fromkeys("abcdef", 0.0)

    told = sum(bool(sure_pairs(fitted(logs))[0]) for logs in boards(100, equal, 8))

    assert told <= 9  # 5 are expected; 10 or more would come about once in 35 runs of other seeds


def test_intervals_hold_the_true_ratio() -> None:
    speeds = {"a": 0.0, "b": 0.0, "c": math.log(2), "d": math.log(4)}
    shown = covered = 0
    for logs in boards(60, speeds, 6):
        places = place_models(fitted(logs))
        for place in places[1:]:
            shown += 1
            covered += place.low <= math.exp(speeds[place.llm] - speeds[places[0].llm]) <= place.high

    assert covered / shown >= 0.95


def test_four_times_as_slow_is_seen_on_twenty_puzzles() -> None:
    for logs in boards(20, {"fast": 0.0, "slow": math.log(4), "same": 0.0}, 20):
        places = {place.llm: place for place in place_models(fitted(logs))}
        assert (places["slow"].rank, places["slow"].rank_high) == (3, 3)


def test_an_interval_excludes_one_exactly_where_the_leader_is_surely_faster() -> None:
    speeds = {f"m{number}": 0.25 * number for number in range(7)}
    for logs in boards(25, speeds, 9):
        fit = fitted(logs)
        leader, *others = place_models(fit)
        sure = {(fit.llms[quick], fit.llms[slow]) for quick, slow in sure_pairs(fit)[0]}
        for place in others:
            assert (place.low > 1) == ((leader.llm, place.llm) in sure)


def test_a_rank_goes_from_the_surely_faster_models_to_the_surely_slower_ones() -> None:
    for logs in boards(10, {"a": 0.0, "b": 0.1, "c": 1.5, "d": 1.6, "e": 3.5}, 12):
        fit = fitted(logs)
        sure = {(fit.llms[quick], fit.llms[slow]) for quick, slow in sure_pairs(fit)[0]}
        for place in place_models(fit):
            assert place.rank == 1 + sum(slow == place.llm for _, slow in sure)
            assert place.rank_high == 5 - sum(quick == place.llm for quick, _ in sure)


def test_models_with_the_same_range_are_ordered_by_what_is_sure_of_them() -> None:
    steady = {(day, 1): 1.0 * day for day in range(9)}
    wild = {(day, 1): 1.0 * day - 0.05 + (0.9 if day % 2 else -0.9) for day in range(9)}
    other = {(day, 1): 1.0 * day + (0.02 if day % 2 else -0.02) for day in range(9)}

    places = place_models(fitted({"steady": steady, "wild": wild, "other": other}))

    assert places[-1].llm == "wild"
    assert (places[-1].rank, places[-1].ratio < 1) == (1, True)


def test_one_noisy_model_does_not_hide_what_is_known_of_the_others() -> None:
    draw = random.Random(3)  # noqa: S311 - the same board in each run
    calm = drawn(draw, {"quick": math.log(200), "slow": math.log(1600), "slower": math.log(3000)}, 8, 0.2)
    noisy = drawn(draw, {"noisy": math.log(300)}, 8, 2.0)

    alone = {place.llm: place for place in place_models(fitted(calm))}
    places = {place.llm: place for place in place_models(fitted({**calm, **noisy}))}

    assert places["quick"].rank_high < places["slow"].rank
    assert places["slow"].low > 1
    assert places["slow"].high / places["slow"].low < 4 * alone["slow"].high / alone["slow"].low


def test_equal_times_are_as_good_as_equal() -> None:
    same = {(day, 1): 1.0 * day for day in range(10)}
    first, second = place_models(fitted({"a": same, "b": dict(same)}))

    assert (first.rank, first.rank_high, second.rank, second.rank_high) == (1, 2, 1, 2)
    assert 0.98 < second.low < 1 < second.high < 1.02


def test_models_of_which_no_two_share_two_puzzles_cannot_be_compared() -> None:
    chain: Logs = {
        "a": {(1, 1): 1.0, (2, 1): 1.0, (3, 1): 1.0},
        "b": {(1, 1): 1.0, (4, 1): 1.0, (5, 1): 1.0},
        "c": {(2, 1): 1.0, (4, 1): 1.0, (6, 1): 1.0},
    }

    assert fit_puzzles(chain) is None


# --- noise -------------------------------------------------------------------------------------------------


def test_each_model_gets_back_the_noise_that_it_was_drawn_with() -> None:
    draw = random.Random(5)  # noqa: S311 - the same board in each run
    spread = {"calm": 0.1, "usual": 0.4, "other": 0.4, "wild": 1.0}
    logs: Logs = {}
    for llm, sigma in spread.items():
        logs |= drawn(draw, {llm: 0.0}, 400, 0.0)
        logs[llm] = {(number, 1): number + draw.gauss(0, sigma) for number in range(400)}

    noise, df = estimate_noise(logs) or ([], [])

    assert noise[1:] == pytest.approx([0.16, 0.16, 1.0], rel=0.25)
    assert df == [403] * 4


def test_noise_is_drawn_up_to_the_common_one_and_never_down() -> None:
    noise, df = share_noise([0.1, 0.3, 0.5], [2, 2, 2])

    assert noise == pytest.approx([(4 * 0.3 + 2 * 0.1) / 6, 0.3, 0.5])
    assert df == [6, 6, 6]


def test_a_model_far_noisier_than_the_others_keeps_its_noise_to_itself() -> None:
    noise, df = share_noise([0.1, 0.1, 0.1, 9.0], [5, 5, 5, 5])

    assert noise == pytest.approx([0.1, 0.1, 0.1, 9.0])
    assert df == [9, 9, 9, 5]


def test_at_most_a_quarter_of_the_models_are_left_out_of_the_common_noise() -> None:
    noise, df = share_noise([0.01, 0.01, 0.01, 9.0, 8.0], [5] * 5)

    assert df == [9, 9, 9, 5, 9]
    assert noise[0] > 0.01


def test_no_noise_at_all_still_leaves_a_doubt() -> None:
    assert share_noise([0.0, 0.0], [3, 3])[0] == [1e-4, 1e-4]


# --- extremes ----------------------------------------------------------------------------------------------


def test_a_single_extreme_time_among_many_puzzles_is_cut_and_costs_certainty() -> None:
    draw = random.Random(9)  # noqa: S311 - the same board in each run
    logs = drawn(draw, dict.fromkeys("abcd", 0.0), 12, 0.2)
    before = logs["a"][3, 1]
    logs["a"][3, 1] += 6.0

    cut, factors = cut_extremes(logs)

    assert before < cut["a"][3, 1] < before + 3
    assert factors == [(12 / 11) ** 2, 1, 1, 1]
    assert {llm: cut[llm] for llm in "bcd"} == {llm: logs[llm] for llm in "bcd"}


def test_with_fewer_than_twelve_puzzles_nothing_is_cut() -> None:
    logs = drawn(random.Random(9), dict.fromkeys("abcd", 0.0), 11, 0.2)  # noqa: S311 - the same board
    logs["a"][3, 1] += 6.0

    assert cut_extremes(logs) == (logs, [1] * 4)


# --- failures ----------------------------------------------------------------------------------------------


def test_failures_cost_what_trying_until_solved_costs() -> None:
    tries = {
        "sure": {(day, 1): Tries(5, 5) for day in range(20)},
        "flaky": {(day, 1): Tries(2, 5) for day in range(20)},
    }

    (sure, _), (flaky, _) = failure_costs(["sure", "flaky"], tries)

    assert math.exp(flaky - sure) == pytest.approx(2.5, rel=0.02)


def test_the_figures_of_failures_are_those_of_the_rule() -> None:
    tries = {"a": {(1, 1): Tries(1, 2), (2, 1): Tries(2, 2)}, "b": {(1, 1): Tries(0, 2), (2, 1): Tries(1, 1)}}
    rates = (1.5 / 5, 3.5 / 4)
    expected = 2 * rates[0] + 2 * rates[1]

    (cost, spread), _ = failure_costs(["a", "b"], tries)

    assert cost == pytest.approx(math.log((expected + 0.5) / 3.5))
    by_attempts = (1 - 3.5 / 5) / 3.5
    share = 3 / expected
    squares = (1 - share * 2 * rates[0]) ** 2 + (2 - share * 2 * rates[1]) ** 2
    assert spread == pytest.approx(max(by_attempts, 2 * squares / 3.5**2))


def test_a_model_that_hardly_ever_solves_is_not_first_for_the_few_times_it_did() -> None:
    logs = drawn(random.Random(2), {"sniper": math.log(0.3), "sure": 0.0}, 20, 0.3)  # noqa: S311 - as above
    tries = {
        "sniper": {(day, 1): Tries(1 if day % 2 else 0, 5) for day in range(20)},
        "sure": {(day, 1): Tries(5, 5) for day in range(20)},
    }
    fit = fitted(logs)

    assert place_models(fit)[0].llm == "sniper"
    assert place_models(count_failures(fit, tries))[0].llm == "sure"


# --- one or two puzzles ------------------------------------------------------------------------------------


def test_on_one_puzzle_the_runs_are_compared() -> None:
    fit = fit_runs({"a": {(1, 1): [1.0, 1.2, 1.4]}, "b": {(1, 1): [2.0, 2.1, 2.2, 2.3]}})

    assert fit.speed == pytest.approx([1.2, 2.15])
    assert fit.error(0, 1) == pytest.approx(math.sqrt(fit.noise[0] / 3 + fit.noise[1] / 4))
    assert fit.df == [6, 7]


def test_on_two_puzzles_both_count_the_same() -> None:
    fit = fit_runs({"a": {(1, 1): [1.0] * 3, (1, 2): [3.0] * 9}, "b": {(1, 1): [2.0] * 9, (1, 2): [4.0] * 3}})

    assert fit.speed == pytest.approx([2.0, 3.0])


# --- arithmetic --------------------------------------------------------------------------------------------


def test_the_inverse_times_the_matrix_is_one() -> None:
    matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]

    inverse = invert(matrix)

    for i in range(3):
        for j in range(3):
            assert sum(matrix[i][k] * inverse[k][j] for k in range(3)) == pytest.approx(float(i == j))


def test_a_wide_interval_is_no_error() -> None:
    logs: Logs = {"a": {(d, 1): 900.0 * (-1) ** d for d in range(3)}, "b": {(d, 1): 1.0 for d in range(3)}}

    (_, other) = place_models(fitted(logs))

    assert 0 <= other.low < other.high < math.inf
    assert two_sided_quantile(0.05, 2) > 4
