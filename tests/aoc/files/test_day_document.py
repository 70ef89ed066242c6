"""Day document: a day's file as bytes. Read rightly or refused, and never changed but for what is added."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.aoc.files import day_document
from bridgehead.aoc.files.day_document import CorruptDay
from bridgehead.aoc.files.entries import NewEntry, format_timestamp
from tests.aoc.data import entry

NEW = NewEntry("new", 2, 7, "2025-12-24T00:00:00.000Z")
WRITTEN = {"llm": "new", "phase": 2, "speedMs": 7, "timestamp": "2025-12-24T00:00:00.000Z"}

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
ENTRIES = st.lists(
    st.builds(
        lambda llm, time, phase, key, more: {
            "llm": llm,
            "phase": phase,
            key: time,
            "timestamp": "2025-12-06T09:12:44.1234567Z",
            **more,
        },
        NAMES,
        st.integers(0, 2**63 - 1),
        st.sampled_from([1, 2]),
        st.sampled_from(["speedMs", "speed_ms"]),
        st.dictionaries(st.sampled_from(["note", "day", "entries"]), st.integers() | NAMES, max_size=2),
    ),
    max_size=6,
)
LAYOUTS = st.sampled_from(
    [{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)
MORE = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])).filter(lambda key: key not in {"day", "entries"}),
    st.none() | st.integers() | NAMES | st.lists(NAMES),
    max_size=3,
)


@settings(deadline=None)
@given(entries=ENTRIES, layout=LAYOUTS, more=MORE, first=st.booleans())
def test_a_file_of_any_layout_keeps_everything_when_it_grows(
    entries: list[Any], layout: dict[str, Any], more: dict[str, Any], *, first: bool
) -> None:
    document = {**more, "day": 4, "entries": entries} if first else {"day": 4, "entries": entries, **more}
    data = json.dumps(document, **layout).encode()

    read = day_document.decode_entries(data, 4)
    grown = day_document.split_document(data).with_new([NEW, NEW]).data

    assert [(e.llm, e.phase, e.time) for e in read] == [
        (e["llm"], e["phase"], e.get("speedMs", e.get("speed_ms"))) for e in entries
    ]
    assert json.loads(grown) == {**document, "entries": [WRITTEN, WRITTEN, *entries]}
    assert list(json.loads(grown)) == list(document)
    assert len(day_document.decode_entries(grown, 4)) == len(entries) + 2


@settings(deadline=None)
@given(names=st.lists(NAMES, min_size=1, max_size=5))
def test_any_name_comes_back_intact_from_a_file_of_ours(names: list[str]) -> None:
    grown = day_document.empty_document(9)
    for name in names:
        grown = day_document.split_document(grown.data).with_new([NewEntry(name, 1, 5, format_timestamp(0))])

    assert [entry.llm for entry in day_document.decode_entries(grown.data, 9)] == names[::-1]
    assert [e["llm"] for e in json.loads(grown.data)["entries"]] == names[::-1]
    assert sum(len(times) for times in day_document.decode_times(grown.data, 9)[1].values()) == len(names)


OURS = day_document.empty_document(4).with_new([NEW, NewEntry("a]b", 1, 3, "2025-12-01T00:00:00.000Z")]).data
THEIRS = json.dumps({"day": 4, "entries": [entry("é", 1), {**entry("x", 2), "k": [1]}], "v": 1}).encode()


@settings(deadline=None, max_examples=400)
@given(
    data=st.sampled_from([OURS, THEIRS]),
    at=st.integers(0, 400),
    cut=st.integers(0, 12),
    put=st.binary(max_size=4)
    | st.sampled_from([b",", b"]", b"}", b'"', b'"day":4,', b"\n", b" ", b"0", b"-"]),
)
def test_any_mutation_is_read_as_other_readers_read_it_or_refused(
    data: bytes, at: int, cut: int, put: bytes
) -> None:
    mutated = data[:at] + put + data[at + cut :]
    try:
        read = day_document.decode_entries(mutated, 4)
    except CorruptDay:
        return

    document = json.loads(mutated)
    found = [(e["llm"], e["phase"], e.get("speedMs", e.get("speed_ms"))) for e in document["entries"]]
    assert [(e.llm, e.phase, e.time) for e in read] == found
    assert day_document.decode_times(mutated, 4) == day_document.group_times(read)
    grown = day_document.split_document(mutated).with_new([NEW]).data
    assert json.loads(grown) == {**document, "entries": [WRITTEN, *document["entries"]]}


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "truncated"),
        (b"{\n", "truncated - in line 2"),
        (b"[]", "array"),
        (b'{"day": 4}', "entries"),
        (b'{"entries": []}', "day"),
        (b'{"day": 5, "entries": []}', "day 5"),
        (b'{"day": 4, "entries": [{}]}', "$.entries[0]"),
        (b'{"day": 4, "entries": [{"llm": "a", "phase": 1, "timestamp": ""}]}', "speedMs"),
        (
            b'{"day": 4, "entries": [{"llm": "a", "phase": 3, "speedMs": 1, "timestamp": ""}]}',
            "$.entries[0].phase",
        ),
        (
            b'{"day": 4, "entries": [{"llm": "a", "phase": 1, "speedMs": -1, "timestamp": ""}]}',
            "$.entries[0].speedMs",
        ),
        (b'{"day": 4,\n"entries": [\n{"llm": oops}]}', "line 3"),
        (b'{"day": 4, "entries": [], "entries": []}', "twice"),
        (b'{"day": 4, "day": 4, "entries": []}', "twice"),
        (b'{"day": 4, "entries": [], "entr\\u0069es": []}', "twice"),
        (b'{"day": 4, "entries": [], "x": 1, "x": 2}', "twice"),
        (b'{"day": 4, "entries": []} {}', "trailing"),
        (b'{"day": 4, "entries": [], "x": "\xff"}', "invalid"),
        (b'{"day": 4, "x": ' + b"[" * 5000 + b"]" * 5000 + b', "entries": []}', "recursion"),
    ],
)
def test_a_file_that_cannot_be_read_rightly_is_refused_with_the_place(data: bytes, word: str) -> None:
    for read in (day_document.decode_entries, day_document.decode_times):
        with pytest.raises(CorruptDay) as refusal:
            read(data, 4)
        assert word in str(refusal.value).lower() or word in str(refusal.value)


def test_a_new_file_is_one_entry_a_line() -> None:
    assert day_document.empty_document(4).with_new([NEW, NewEntry("old", 1, 3, "t")]).data.decode() == (
        '{\n  "day": 4,\n  "entries": [\n'
        '    {"llm": "new", "phase": 2, "speedMs": 7, "timestamp": "2025-12-24T00:00:00.000Z"},\n'
        '    {"llm": "old", "phase": 1, "speedMs": 3, "timestamp": "t"}\n'
        "  ]\n}\n"
    )


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1764585000.0, "2025-12-01T10:30:00.000Z"),
        (1764585000.9999, "2025-12-01T10:30:00.999Z"),
    ],
)
def test_a_timestamp_is_utc_with_milliseconds(seconds: float, written: str) -> None:
    assert format_timestamp(seconds) == written
