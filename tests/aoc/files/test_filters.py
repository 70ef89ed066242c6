"""Filters: which runs a question is about."""

from msgspec import UNSET

from bridgehead.aoc.files.filters import Filters, make_filters


def test_an_argument_that_is_missing_or_empty_lets_every_run_count() -> None:
    assert make_filters() == make_filters(day=0, phase=0, llm="") == Filters()
    assert make_filters(UNSET, UNSET, UNSET, UNSET, "solve_rate") == Filters(order="solve_rate")


def test_an_argument_that_is_given_narrows_the_question() -> None:
    assert make_filters(3, 2, "gpt4", "execution") == Filters(3, 2, "gpt4", "execution", "speed")
    assert make_filters(grade="verified").grade == "verified"
