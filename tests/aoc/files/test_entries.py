"""Entries: which words a record may have, and which key its time is read from."""

from typing import Any

import msgspec
import pytest

from bridgehead.aoc.files.entries import (
    CLAIMED,
    EXECUTION,
    MEASURED,
    SOLVING,
    Entry,
    Measure,
    RecordKey,
    Source,
)

RECORD = {"llm": "a", "phase": 1, "timestamp": "t"}


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (Measure, SOLVING),
        (Measure, EXECUTION),
        (Source, CLAIMED),
        (Source, MEASURED),
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
    ("keys", "measure", "source"),
    [
        ({}, SOLVING, CLAIMED),
        ({"measure": "execution", "source": "measured"}, EXECUTION, MEASURED),
        ({"measure": "something else", "source": 7}, SOLVING, CLAIMED),
    ],
)
def test_a_word_that_is_not_ours_means_what_no_word_means(
    keys: dict[str, Any], measure: str, source: str
) -> None:
    entry = msgspec.convert(RECORD | keys, Entry)

    assert (entry.measure, entry.source) == (measure, source)
