"""Handouts: which caller has been given which phase."""

import pytest

from bridgehead.aoc.handouts import Handouts


def test_a_phase_is_given_to_the_caller_who_asked_and_to_no_other() -> None:
    handouts = Handouts()
    assert handouts.record("ann", 1, 1) == [1]
    assert handouts.record("ann", 1, 1, 2) == [2]
    handouts.record("process", 2, 1)

    assert [handouts.has("ann", 1, phase) for phase in (1, 2)] == [True, True]
    assert not handouts.has("ann", 2, 1)
    assert not handouts.has("bob", 1, 1)
    assert handouts.has("process", 2, 1)


def test_of_very_many_callers_the_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridgehead.aoc.handouts.MAX_CALLERS", 2)
    handouts = Handouts()
    for caller in ("a", "b", "c"):
        handouts.record(caller, 1, 1)
    handouts.record("c", 2, 1)

    assert [handouts.has(caller, 1, 1) for caller in ("a", "b", "c")] == [False, True, True]
