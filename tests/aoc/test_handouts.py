"""Handouts: who has been given which phase."""

import pytest

from bridgehead.aoc import handouts
from bridgehead.aoc.handouts import Handouts


def test_a_phase_is_given_to_the_caller_who_asked_and_to_no_other() -> None:
    given = Handouts()
    assert given.note("ann", 1, 1) == [1]
    assert given.note("ann", 1, 1, 2) == [2]
    given.note("process", 2, 1)

    assert [given.has("ann", 1, phase) for phase in (1, 2)] == [True, True]
    assert not given.has("ann", 2, 1)
    assert not given.has("bob", 1, 1)
    assert given.has("process", 2, 1)


def test_of_very_many_callers_the_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handouts, "MAX_CALLERS", 2)
    given = Handouts()
    for caller in ("a", "b", "c"):
        given.note(caller, 1, 1)
    given.note("c", 2, 1)

    assert [given.has(caller, 1, 1) for caller in ("a", "b", "c")] == [False, True, True]
