"""Day document: the bytes of a day's records: decoding, and writing them again with new entries. Pure.

The document is one JSON object, `{"day": 1, "entries": [...]}`, newest entry first, one entry a line. It is
always written whole; the entries that were there, and keys of other programs, keep their bytes. Readers and
writers all decode with `decode_day`, so that they agree on what is corrupt. A file that can be read in two
ways (a repeated key, two different times in one entry) is refused too.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from bridgehead.runtime.errors import StorageError

from .entries import CLAIMED, EXECUTION, GRADES, SOLVING, Entry, Group, NewEntry, RecordKey
from .figures import Runs
from .names import canonical_name
from .snapshot import BYTE_ORDER_MARK, UNDECODABLE

MAX_BYTES = 64 * 1024 * 1024
"""The largest file of a day, some hundred thousand records."""

_INDENT = b"\n    "
_BYTE = re.compile(r"\(byte (\d+)\)")
_ENTRY_PATH = re.compile(r"`\$\.entries\[(\d+)\](?:\.(\w+))?`")
_NONE_NEWER = (None,) * 5
_MISSING = re.compile(r"missing required field `(\w+)`")

RULES = {
    "day": "the number of the day",
    "entries": "a list of records",
    "llm": "a name of at least one character",
    "phase": "1 or 2",
    "speedMs": "a whole number of milliseconds, 0 or more",
    "speed_ms": "a whole number of milliseconds, 0 or more",
    "timestamp": "a text",
}
"""The requirement for each key, for error messages."""


class CorruptDay(Exception):
    """The bytes are not the records of this day; the message gives the reason, and the line if known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")


def corrupt_file(path: str, problem: CorruptDay) -> StorageError:
    """Make the error for a corrupt file, which is not changed."""
    return StorageError(
        f"{path} is corrupt and was left as it is: {problem}.",
        next_step="Fix or move the file; `bridgehead aoc check` lists every problem.",
        path=path,
    )


class _Day(Struct):
    day: int
    entries: list[Entry]


class _RawDay(Struct):
    entries: list[Raw]


_decode_day = msgspec.json.Decoder(_Day).decode
_decode_raw = msgspec.json.Decoder(_RawDay).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class DayDocument(Struct):
    """A day's file in the parts that it is written from."""

    head: bytes
    """Up to the opening bracket of the entries, with the keys of other programs."""
    body: bytes
    """The entries, newest first."""
    tail: bytes
    """From the closing bracket on."""

    def with_new(self, lines: list[bytes]) -> DayDocument:
        """Return the document with new entries, given newest first."""
        older = [self.body] if self.body else []
        return DayDocument(self.head, (b"," + _INDENT).join([*lines, *older]), self.tail)

    @property
    def data(self) -> bytes:
        """The whole file."""
        return self.head + (_INDENT + self.body if self.body else b"") + self.tail


def encode_entry(entry: NewEntry, key: RecordKey = "speedMs") -> bytes:
    """Write an entry on one line, its keys in the order of the contract and then the newer ones."""
    encode = msgspec.json.encode
    line = b'{"llm": %b, "phase": %d, "%b": %d, "timestamp": %b' % (
        encode(entry.llm),
        entry.phase,
        key.encode(),
        entry.time,
        encode(entry.timestamp),
    )
    for name, value in (
        (b"measure", entry.measure),
        (b"grade", None if entry.grade == CLAIMED else entry.grade),
        (b"details", entry.details),
        (b"seal", entry.seal),
        (b"source", entry.source),
        (b"withdrawn", entry.withdrawn),
    ):
        if value is not None:
            line += b', "%b": %b' % (name, encode(value))
    return line + b"}"


def empty_document(day: int) -> DayDocument:
    """Make the file of a day without records."""
    return DayDocument(b'{\n  "day": %d,\n  "entries": [' % day, b"", b"\n  ]\n}\n")


def open_document(data: bytes, entries: list[bytes]) -> DayDocument:
    """Take a file apart that `decode_day` has accepted, and put other entries into it, newest first."""
    text = data.removeprefix(BYTE_ORDER_MARK)
    before: list[bytes] = []
    after: list[bytes] = []
    part = before
    for key, raw in _decode_members(text).items():
        if key == "entries":
            part = after
        else:
            part.append(b"\n  %b: %b" % (msgspec.json.encode(key), bytes(raw)))
    mark = data[: len(data) - len(text)]
    return DayDocument(
        mark + b"{" + b",".join([*before, b'\n  "entries": [']),
        (b"," + _INDENT).join(entries),
        b",".join([b"\n  ]", *after]) + b"\n}\n",
    )


def raw_entries(data: bytes) -> list[bytes]:
    """Return the bytes of each entry."""
    return [bytes(raw) for raw in _decode_raw(data.removeprefix(BYTE_ORDER_MARK)).entries]


def decode_day(data: bytes, day: int) -> list[Entry]:
    """Decode a day's file, newest entry first, or raise `CorruptDay`. Only this decides what is valid."""
    text = data.removeprefix(BYTE_ORDER_MARK)
    try:
        decoded = _decode_day(text)
        if not text.isascii():
            text.decode()  # msgspec does not check the text of keys it skips
    except UNDECODABLE as error:
        raise explain(error, text) from error
    if decoded.day != day:
        raise CorruptDay(f"it says day {decoded.day}, but its name says day {day}")
    _refuse_repeated_keys(text, _check_times(text, decoded.entries))
    return decoded.entries


def group_entries(entries: list[Entry]) -> dict[Group, Runs]:
    """Group the times of the entries that count. Apply `Seals.demote` first if grades matter."""
    times: dict[tuple[str, int, object, object], list[int]] = {}
    # Up to 300,000 iterations: plain attributes instead of properties, and a `try` that is free on success.
    for entry in entries:
        if entry.withdrawn:
            continue
        milliseconds: Any = entry.speed_ms
        if milliseconds is UNSET:
            milliseconds = entry.original_speed_ms
        key = (entry.llm, entry.phase, entry.measure_key, entry.grade_key)
        try:
            times[key].append(milliseconds)
        except KeyError:
            times[key] = [milliseconds]
        except TypeError:  # another program's measure or grade that cannot be hashed
            times.setdefault((entry.llm, entry.phase, entry.measure, entry.grade), []).append(milliseconds)
    groups: dict[Group, Runs] = {}
    for (llm, phase, measure, grade), of_group in times.items():
        group = Group(
            canonical_name(llm) or llm,
            phase,
            EXECUTION if measure == EXECUTION else SOLVING,
            grade if grade in GRADES else CLAIMED,
        )
        runs = Runs(sorted(of_group), len(of_group) if group.grade == CLAIMED else 0)
        groups[group] = runs if group not in groups else groups[group].merged(runs)
    return groups


# --- problems and their lines ------------------------------------------------------------------------------


def explain(error: Exception, data: bytes) -> CorruptDay:
    """Explain a decoder's error in the words of the file format, with its line."""
    if isinstance(error, RecursionError):
        return CorruptDay("it is nested too deeply")
    text = str(error)
    entry = _ENTRY_PATH.search(text)
    missing = _MISSING.search(text)
    line = line_of_entry(data, int(entry[1])) if entry else None
    if missing:
        return CorruptDay(f"`{missing[1]}` is missing", line)
    named = [key for key in ("day", "entries") if f"$.{key}`" in text]
    key = (entry[2] if entry else None) or (named[0] if named else "")
    if key in RULES:
        return CorruptDay(f"`{key}` must be {RULES[key]}", line)
    if entry:
        return CorruptDay("the entry is not an object with `llm`, `phase`, `speedMs` and `timestamp`", line)
    at = _BYTE.search(text)
    if at or "truncated" in text:
        line = data.count(b"\n", 0, int(at[1]) if at else len(data)) + 1
        reason = _BYTE.sub("", text).removeprefix("JSON is malformed: ").strip()
        return CorruptDay(f"not valid JSON ({reason})", line)
    return CorruptDay(f"not the records of a day ({text})")


def line_of_entry(data: bytes, place: int) -> int | None:
    """Return the line in which an entry begins, from 1; None if the bytes are not JSON."""
    try:
        return lines_of_entries(data)[place]
    except UNDECODABLE:
        return None


def lines_of_entries(data: bytes) -> list[int]:
    """Return the line in which each entry begins, in one pass; raises one of `UNDECODABLE`."""
    lines: list[int] = []
    line, last, at = 1, 0, data.find(b'"entries"')
    for value in raw_entries(data):
        start = data.find(value, at)
        line += data.count(b"\n", last, start)
        lines.append(line)
        last, at = start, start + len(value)
    return lines


def _check_times(data: bytes, entries: list[Entry]) -> int:
    """Refuse an entry without a time or with two; return how many quotes a file of just these entries has.

    An entry has 12: four keys, and the texts of `llm` and `timestamp`. Each newer key with a text adds 4.
    """
    quotes = 4 + 12 * len(entries)
    for place, entry in enumerate(entries):
        if entry.original_speed_ms is not UNSET or entry.speed_ms is UNSET:
            if entry.original_speed_ms is UNSET:
                raise CorruptDay("the entry has neither `speedMs` nor `speed_ms`", line_of_entry(data, place))
            if entry.speed_ms not in {UNSET, entry.original_speed_ms}:
                raise CorruptDay("`speedMs` and `speed_ms` are different", line_of_entry(data, place))
        if not entry.timestamp:
            quotes += 1  # an odd number never matches: such a file is checked key by key
        newer = (
            entry.measure_key,
            entry.grade_key,
            entry.seal,
            entry.source_key,
            entry.withdrawn,
        )
        if newer != _NONE_NEWER:
            quotes += sum(4 for value in newer if isinstance(value, str))
        if entry.details_key is not None:
            quotes += 2 + msgspec.json.encode(entry.details_key).count(b'"')
    return quotes


def _refuse_repeated_keys(data: bytes, quotes: int) -> None:
    """Refuse a file in which an object has a key twice: readers differ in which value they take.

    With exactly the expected number of quotes, and no escapes, there is no room for another key. Counting one
    byte takes 5 ms in a file of 300,000 records, where looking at each key takes a second.
    """
    if b"\\" not in data and data.count(b'"') == quotes:
        return
    import json  # the only decoder that shows each pair of an object; msgspec keeps the last one

    def unique(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise CorruptDay(f"the key `{twice}` appears twice in one object")

    try:
        json.loads(data, object_pairs_hook=unique, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise CorruptDay("it is nested too deeply") from error
