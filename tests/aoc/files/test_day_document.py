"""Day document: a day's file as bytes. Read rightly or refused, and never changed but for what is added."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.aoc.files import day_document
from bridgehead.aoc.files.day_document import CorruptDay
from bridgehead.aoc.files.entries import Details, NewEntry, format_timestamp
from tests.aoc.data import entry

NEW = NewEntry("new", 2, 7, "2025-12-24T00:00:00.000Z")
WRITTEN = {"llm": "new", "phase": 2, "speedMs": 7, "timestamp": "2025-12-24T00:00:00.000Z"}


def grown_by(data: bytes, *new: NewEntry) -> bytes:
    """Write a file again with new entries, each above the ones before."""
    document = day_document.open_document(data, day_document.raw_entries(data))
    return document.with_new([day_document.encode_entry(one) for one in reversed(new)]).data


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

    read = day_document.decode_day(data, 4)
    grown = grown_by(data, NEW, NEW)

    assert [(e.llm, e.phase, e.time) for e in read] == [
        (e["llm"], e["phase"], e.get("speedMs", e.get("speed_ms"))) for e in entries
    ]
    assert json.loads(grown) == {**document, "entries": [WRITTEN, WRITTEN, *entries]}
    assert list(json.loads(grown)) == list(document)
    assert len(day_document.decode_day(grown, 4)) == len(entries) + 2


@settings(deadline=None)
@given(names=st.lists(NAMES, min_size=1, max_size=5))
def test_any_name_comes_back_intact_from_a_file_of_ours(names: list[str]) -> None:
    data = day_document.empty_document(9).data
    for name in names:
        data = grown_by(data, NewEntry(name, 1, 5, format_timestamp(0)))

    decoded = day_document.decode_day(data, 9)
    assert [entry.llm for entry in decoded] == names[::-1]
    assert [e["llm"] for e in json.loads(data)["entries"]] == names[::-1]
    groups = day_document.group_entries(decoded)
    assert sum(len(runs.ordered) for runs in groups.values()) == len(names)


OURS = grown_by(day_document.empty_document(4).data, NewEntry("a]b", 1, 3, "2025-12-01T00:00:00.000Z"), NEW)
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
        read = day_document.decode_day(mutated, 4)
    except CorruptDay:
        return

    document = json.loads(mutated, object_pairs_hook=unique)
    found = [(e["llm"], e["phase"], e.get("speedMs", e.get("speed_ms"))) for e in document["entries"]]
    assert [(e.llm, e.phase, e.time) for e in read] == found
    grown = grown_by(mutated, NEW)
    assert json.loads(grown) == {**document, "entries": [WRITTEN, *document["entries"]]}


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object that has no key twice."""
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


GOOD = {"llm": "a", "phase": 1, "speedMs": 1, "timestamp": "t"}


def day_of(**entry: Any) -> bytes:
    return json.dumps({"day": 4, "entries": [{**GOOD, **entry}]}).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "line 1: not valid JSON (Input data was truncated)"),
        (b"{\n", "line 2: not valid JSON (Input data was truncated)"),
        (b"[]", "not the records of a day"),
        (b'{"day": 4}', "`entries` is missing"),
        (b'{"entries": []}', "`day` is missing"),
        (b'{"day": "4", "entries": []}', "`day` must be the number of the day"),
        (b'{"day": 4, "entries": {}}', "`entries` must be a list of records"),
        (b'{"day": 5, "entries": []}', "it says day 5, but its name says day 4"),
        (b'{"day": 4, "entries": [\n7]}', "line 2: the entry is not an object"),
        (b'{"day": 4, "entries": [{}]}', "line 1: `llm` is missing"),
        (day_of(phase=3), "line 1: `phase` must be 1 or 2"),
        (day_of(speedMs=-1), "line 1: `speedMs` must be a whole number of milliseconds, 0 or more"),
        (day_of(speed_ms=2), "line 1: `speedMs` and `speed_ms` are different"),
        (day_of(timestamp=7), "line 1: `timestamp` must be a text"),
        (
            b'{"day": 4, "entries": [{"llm": "a", "phase": 1, "timestamp": ""}]}',
            "neither `speedMs` nor `speed_ms`",
        ),
        (b'{"day": 4,\n"entries": [\n{"llm": oops}]}', "line 3: not valid JSON"),
        (b'\n{"day": 4, oops}', "line 2: not valid JSON"),
        (b'{"day": 4, "entries": [], "entries": []}', "the key `entries` appears twice"),
        (b'{"day": 4, "day": 4, "entries": []}', "the key `day` appears twice"),
        (b'{"day": 4, "entries": [], "entr\\u0069es": []}', "the key `entries` appears twice"),
        (b'{"day": 4, "entries": [], "x": 1, "x": 2}', "the key `x` appears twice"),
        (
            b'{"day": 4, "entries": [{"llm": "a", "phase": 1, "phase": 2, "speedMs": 1, "timestamp": "t"}]}',
            "the key `phase` appears twice",
        ),
        (b'{"day": 4, "entries": []} {}', "trailing"),
        (b'{"day": 4, "entries": [], "x": "\xff"}', "invalid"),
        # Deeper than any Python decodes; 3.14 stops only where its stack ends.
        (b'{"day": 4, "x": ' + b"[" * 10**6 + b"]" * 10**6 + b', "entries": []}', "nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_words_with_the_line(data: bytes, words: str) -> None:
    with pytest.raises(CorruptDay) as refusal:
        day_document.decode_day(data, 4)

    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "more",
    [
        {"timestamp": ""},
        {"speed_ms": 1},
        {"measure": 5},
        {"measure": [1]},
        {"source": ["x"]},
        {"grade": ["verified"]},
        {"grade": "best", "seal": 5, "details": [{"attempt": 1}]},
        {"withdrawn": {"by": "me"}},
    ],
)
def test_what_is_only_unusual_is_read(more: dict[str, Any]) -> None:
    (entry,) = day_document.decode_day(day_of(**more), 4)

    assert (entry.time, entry.measure, entry.grade) == (1, "solving", "claimed")
    assert len(day_document.group_entries([entry])) == (not entry.withdrawn)


def test_groups_leave_out_what_was_withdrawn_and_count_what_was_claimed() -> None:
    runs = [
        {**GOOD, "grade": "measured"},
        {**GOOD, "source": "measured"},
        GOOD,
        {**GOOD, "measure": "execution", "speedMs": 3},
        {**GOOD, "speedMs": 9, "withdrawn": "2025"},
        {**GOOD, "llm": " a\u200b"},
    ]
    data = json.dumps({"day": 4, "entries": runs}).encode()

    groups = day_document.group_entries(day_document.decode_day(data, 4))

    assert {group: (runs.ordered, runs.claimed) for group, runs in groups.items()} == {
        ("a", 1, "solving", "measured"): ([1], 0),
        ("a", 1, "solving", "claimed"): ([1, 1, 1], 3),
        ("a", 1, "execution", "claimed"): ([3], 1),
    }


def test_a_new_file_is_one_entry_a_line() -> None:
    assert day_document.empty_document(4).data == b'{\n  "day": 4,\n  "entries": [\n  ]\n}\n'
    assert grown_by(day_document.empty_document(4).data, NewEntry("old", 1, 3, "t"), NEW).decode() == (
        '{\n  "day": 4,\n  "entries": [\n'
        '    {"llm": "new", "phase": 2, "speedMs": 7, "timestamp": "2025-12-24T00:00:00.000Z"},\n'
        '    {"llm": "old", "phase": 1, "speedMs": 3, "timestamp": "t"}\n'
        "  ]\n}\n"
    )


NEWER = NewEntry("timed", 1, 3, "t", "execution", "measured", Details(agent="codex", tries=2), "5ea1")


def test_an_entry_has_the_contracts_keys_and_then_the_newer_ones() -> None:
    withdrawn = NewEntry("timed", 1, 3, "t", "execution", source="measured", withdrawn="2025")

    assert day_document.encode_entry(NEW) == json.dumps(WRITTEN).encode()
    assert day_document.encode_entry(withdrawn) == (
        b'{"llm": "timed", "phase": 1, "speedMs": 3, "timestamp": "t",'
        b' "measure": "execution", "source": "measured", "withdrawn": "2025"}'
    )
    assert day_document.encode_entry(NEWER) == (
        b'{"llm": "timed", "phase": 1, "speedMs": 3, "timestamp": "t", "measure": "execution",'
        b' "grade": "measured", "details": {"tries":2,"agent":"codex"}, "seal": "5ea1"}'
    )
    assert b'"speed_ms": 7' in day_document.encode_entry(NEW, "speed_ms")


def test_a_file_as_we_write_it_is_not_looked_at_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    each = [
        NewEntry("a", 1, 3, "t", measure="execution"),
        NewEntry("a", 1, 3, "t", source="measured"),
        NewEntry("a", 1, 3, "t", withdrawn="2025"),
    ]
    written = grown_by(day_document.empty_document(4).data, NEW, NEWER, *each)

    def look(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a file of 300,000 records would take a second")

    monkeypatch.setattr(json, "loads", look)

    assert len(day_document.decode_day(written, 4)) == 5


@pytest.mark.parametrize(
    "entry",
    [
        '{"llm": "a", "phase": 1, "speedMs": 1, "llm": "b"}',
        '{"llm": "a", "phase": 1, "speedMs": 1, "speedMs": 1, "llm": "b"}',
        '{"llm": "a\\"", "phase": 1, "speedMs": 1, "timestamp": "t", "speedMs": 1}',
        '{"llm": "a", "phase": 1, "speedMs": 1, "timestamp": "t", "source": 1, "source": 1}',
    ],
)
def test_a_key_that_stands_twice_is_refused_however_many_quotes_there_are(entry: str) -> None:
    with pytest.raises(CorruptDay, match="appears twice"):
        day_document.decode_day(f'{{"day": 4, "entries": [{entry}]}}'.encode(), 4)


def test_the_line_of_an_entry_counts_from_the_first_line_even_if_that_is_empty() -> None:
    data = b'\n{"day": 4, "entries": [\n{}, \n{}]}'

    assert [day_document.line_of_entry(data, place) for place in (0, 1)] == [3, 4]


def test_a_file_without_any_layout_gets_some_where_it_grows() -> None:
    data = b'{"day":4,"entries":[{"llm":"a","phase":1,"speedMs":1,"timestamp":"t"}]}'
    grown = grown_by(data, NEW)
    first = grown_by(b'{"day":4,"entries":[]}', NEW)

    assert grown.count(b"\n    ") == 2
    assert first.endswith(b'Z"}\n  ]\n}\n')


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
