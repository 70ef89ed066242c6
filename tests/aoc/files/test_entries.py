"""Entries: which words a record may have, and which key its time is read from."""

from typing import Any

import msgspec
import pytest

from bridgehead.aoc.files.entries import (
    CLAIMED,
    EXECUTION,
    GRADES,
    SOLVING,
    Details,
    Entry,
    Grade,
    Measure,
    NewEntry,
    RecordKey,
    Wanted,
    id_of,
    moment_of,
)

RECORD = {"llm": "a", "phase": 1, "timestamp": "t"}


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (Measure, SOLVING),
        (Measure, EXECUTION),
        *((Grade, grade) for grade in GRADES),
        (RecordKey, "speedMs"),
        (RecordKey, "speed_ms"),
    ],
)
def test_every_word_that_is_written_may_be_asked_for(kind: Any, word: str) -> None:
    assert msgspec.convert(word, kind) == word
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(word + "x", kind)


@pytest.mark.parametrize(
    ("keys", "time"), [({"speedMs": 5}, 5), ({"speed_ms": 6}, 6), ({"speedMs": 5, "speed_ms": 5}, 5), ({}, 0)]
)
def test_the_time_is_read_from_either_key(keys: dict[str, int], time: int) -> None:
    assert msgspec.convert(RECORD | keys, Entry).time == time


@pytest.mark.parametrize(
    ("keys", "measure", "grade"),
    [
        ({}, SOLVING, CLAIMED),
        ({"measure": "execution", "source": "measured"}, EXECUTION, CLAIMED),
        ({"measure": "something else", "source": 7, "grade": "perfect"}, SOLVING, CLAIMED),
        ({"grade": ["verified"], "details": 5}, SOLVING, CLAIMED),
    ],
)
def test_a_word_that_is_not_ours_means_what_no_word_means(
    keys: dict[str, Any], measure: str, grade: str
) -> None:
    entry = msgspec.convert(RECORD | keys, Entry)

    assert (entry.measure, entry.grade, entry.details) == (measure, grade, Details())


def test_what_is_known_of_a_run_comes_back() -> None:
    entry = msgspec.convert(RECORD | {"details": {"tries": 2, "agent": "codex", "other": 1}}, Entry)

    assert entry.details == Details(tries=2, agent="codex")


def test_a_record_has_an_id_that_depends_on_what_it_says_alone() -> None:
    read = msgspec.convert(RECORD | {"speed_ms": 5}, Entry)
    other_layout = msgspec.convert(RECORD | {"speedMs": 5, "measure": "solving", "withdrawn": "x"}, Entry)
    another = msgspec.convert(RECORD | {"speedMs": 6}, Entry)

    assert id_of(1, read) == id_of(1, other_layout) == id_of(1, NewEntry("a", 1, 5, "t"))
    assert len({id_of(1, read), id_of(2, read), id_of(1, another)}) == 3
    assert len(id_of(1, read)) == 12


def test_a_record_whose_name_is_half_a_character_has_an_id_too() -> None:
    assert len({id_of(1, NewEntry(name, 1, 5, "t")) for name in ("\ud83d", "\ud83e", "?")}) == 3


@pytest.mark.parametrize(
    ("details", "attempt"),
    [(Details(attempt="x"), "x"), (Details(), None), ({"attempt": "x"}, None), (None, None)],
)
def test_a_new_record_names_the_attempt_that_our_own_details_name(details: Any, attempt: str | None) -> None:
    assert NewEntry("a", 1, 5, "t", details=details).attempt == attempt


def test_a_record_is_looked_for_by_its_id_or_by_what_it_says() -> None:
    assert str(Wanted(id="ab12")) == "with the id ab12"
    assert str(Wanted(llm="a", phase=2, timestamp="t")) == "of a in phase 2 at t"


def test_moments_are_in_the_order_of_time_whatever_form_they_have() -> None:
    in_order = [
        "sometime",
        "1969-07-20T20:17:40Z",
        "2025-12-06T11:12:43+02:00",
        "2025-12-06T09:12:44Z",
        "2025-12-06T09:12:44.123Z",
        "2025-12-06T09:12:44.1234567Z",
    ]

    moments = list(map(moment_of, in_order))

    assert moments == sorted(set(moments))
    assert moment_of("") == moment_of("2025-13-45T00:00:00Z") == moments[0]
