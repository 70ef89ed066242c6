"""Planning: every combination of what both sides hold and held when they last agreed."""

import pytest

from bridgehead.bitburner.changes.differences import Difference
from bridgehead.bitburner.sync.planning import Action, Rules, find_reverted, make_plan, need_consent

PLACE = ("home", "a.js")


def decide(base: str, local: str, game: str, rules: Rules | None = None, *, reverted: bool = False) -> str:
    was, here, there = ({PLACE: held} if held else {} for held in (base, local, game))
    plan = make_plan(was, here, there, rules or Rules(), frozenset({PLACE} if reverted else ()))
    return plan[0].kind if plan else ""


@pytest.mark.parametrize(
    ("base", "local", "game", "expected"),
    [
        ("1", "1", "1", ""),
        ("", "1", "1", "agree"),
        ("1", "2", "2", "agree"),
        ("1", "", "", "agree"),
        ("", "1", "", "push"),
        ("", "", "1", "pull"),
        ("1", "2", "1", "push"),
        ("1", "1", "2", "pull"),
        ("1", "2", "3", "conflict"),
        ("", "1", "2", "conflict"),
        ("1", "", "1", "held"),
        ("1", "1", "", "held"),
        ("1", "2", "", "push"),
        ("1", "", "2", "pull"),
    ],
)
def test_the_side_that_changed_is_followed_and_two_changes_are_a_conflict(
    base: str, local: str, game: str, expected: str
) -> None:
    assert decide(base, local, game) == expected


def test_deletes_are_carried_over_only_when_asked_for() -> None:
    assert decide("1", "", "1", Rules(deletes=True)) == "delete_game"
    assert decide("1", "1", "", Rules(deletes=True)) == "delete_local"


def test_what_the_game_lost_with_an_older_save_is_sent_again() -> None:
    assert decide("2", "2", "1", reverted=True) == "push"
    assert decide("2", "2", "", Rules(deletes=True), reverted=True) == "push"


def test_one_direction_leaves_the_other_alone() -> None:
    assert decide("1", "2", "1", Rules("pull")) == "skip"
    assert decide("1", "1", "2", Rules("push")) == "skip"
    assert decide("1", "2", "3", Rules("pull")) == "conflict"


def test_only_what_changes_something_is_counted_as_a_change() -> None:
    assert Action("push", PLACE).changes_something
    assert not Action("held", PLACE).changes_something


@pytest.mark.parametrize(
    ("deletes", "files", "asks"),
    [(1, 1, False), (2, 5, True), (10, 100, False), (11, 100, True), (20, 1000, False), (21, 1000, True)],
)
def test_more_than_twenty_deletes_or_a_tenth_are_asked_about(deletes: int, files: int, asks: bool) -> None:  # noqa: FBT001
    assert need_consent(deletes, files) == asks


def test_a_missing_file_was_lost_if_sync_was_there_or_another_file_is_older() -> None:
    missing = Difference("home", "new.js", "missing")
    older = Difference("home", "old.js", "older")
    changed = Difference("home", "other.js", "changed")

    assert find_reverted([missing, changed], is_first=True) == frozenset()
    assert find_reverted([missing, changed], is_first=False) == {("home", "new.js")}
    assert find_reverted([missing, older], is_first=True) == {("home", "new.js"), ("home", "old.js")}
