"""Day document: the bytes of a day's records, decoded to entries and grown by new ones. Pure; no disk here.

The file is one JSON object, `{"day": 1, "entries": [...]}`, newest entry first, one entry a line. A new entry
is put into the bytes behind the opening bracket and nothing else is touched: whatever other keys, older
entries and layout a file has, it keeps. A file that could be read in two ways (a key that stands twice) is
refused, as is one that cannot be read at all.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from bridgehead.runtime.errors import StorageError

from .entries import MAX_MS, Entry, NewEntry, Run

MAX_BYTES = 64 * 1024 * 1024
"""The largest file of a day, some hundred thousand records."""
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_HEAD = b'{\n  "day": %d,\n  "entries": ['
_OUR_HEAD = re.compile(re.escape(_HEAD).replace(b"%d", rb"\d+"))
_TAIL = b"\n  ]\n}\n"
_INDENT = b"\n    "
_KEY = re.compile(rb'\s*"(?:[^"\\]|\\.)*"\s*:\s*', re.DOTALL)
_SPACE = re.compile(rb"\s*")
_BYTE = re.compile(r"\(byte (\d+)\)")
_TRUNCATED = "truncated"


class CorruptDay(Exception):
    """Bytes that are not the records of this day; the text says why and where."""


def corrupt_file(path: str, problem: CorruptDay) -> StorageError:
    """Say that a file is not what its name says; it stays as it is."""
    return StorageError(
        f"{path} is corrupt and was left as it is: {problem}.",
        next_step="Repair it or move it away; `bridgehead aoc check` lists every problem.",
    )


class _Entries(Struct):
    day: int
    entries: list[Entry]


class _Runs(Struct):
    day: int
    entries: list[Run]


_decode_entries = msgspec.json.Decoder(_Entries).decode
_decode_runs = msgspec.json.Decoder(_Runs).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode

Times = dict[int, dict[str, list[int]]]
"""The times of a day by phase and by the name of the LLM, each in order."""


class DayDocument(Struct):
    """A day's file, cut in two where new entries go."""

    head: bytes
    rest: bytes

    def with_new(self, entries: list[NewEntry]) -> DayDocument:
        """Give the file with new entries in it, the newest of which is the first."""
        space = _end_of_space(self.rest, 0)
        is_first = self.rest[space : space + 1] == b"]"
        joint = b"" if is_first else b","
        if not space:  # a file without any layout gets some where it grows
            joint += b"\n  " if is_first else _INDENT
        lines = [_INDENT + _line(entry) for entry in entries]
        return DayDocument(self.head, b",".join(lines) + joint + self.rest)

    @property
    def data(self) -> bytes:
        """The whole file."""
        return self.head + self.rest


def _line(entry: NewEntry) -> bytes:
    encode = msgspec.json.encode
    return b'{"llm": %b, "phase": %d, "speedMs": %d, "timestamp": %b}' % (
        encode(entry.llm),
        entry.phase,
        entry.time,
        encode(entry.timestamp),
    )


def empty_document(day: int) -> DayDocument:
    """Give the file of a day without records."""
    return DayDocument(_HEAD % day, _TAIL)


def split_document(data: bytes) -> DayDocument:
    """Cut a file that was read rightly where its next entry goes."""
    start = _inside(data)
    return DayDocument(data[:start], data[start:])


def decode_entries(data: bytes, day: int) -> list[Entry]:
    """Read a day's entries as they stand, the newest first; raises `CorruptDay`."""
    try:
        found = _decode_entries(data)
    except UNDECODABLE as error:
        raise CorruptDay(located(error, data)) from error
    _check(data, found.day, day)
    for place, entry in enumerate(found.entries):
        try:
            _ = entry.time
        except LookupError as error:
            raise CorruptDay(f"{error} - at `$.entries[{place}]`") from error
    return found.entries


def decode_times(data: bytes, day: int) -> Times:
    """Read a day's times, by phase and LLM, each in order; raises `CorruptDay`."""
    try:
        found = _decode_runs(data)
    except UNDECODABLE:
        return group_times(decode_entries(data, day))  # older keys, or broken
    _check(data, found.day, day)
    groups = group_times(found.entries)
    are_right = all(
        llm and ordered[0] >= 0 and ordered[-1] <= MAX_MS
        for by_llm in groups.values()
        for llm, ordered in by_llm.items()
    )
    return groups if are_right else group_times(decode_entries(data, day))  # which tells what is wrong


def group_times(runs: list[Entry] | list[Run]) -> Times:
    """Group times by phase and by LLM, each group in order."""
    found: dict[str, tuple[list[int], list[int], list[int]]] = {}
    for run in runs:  # the one place that sees each of a quarter of a million runs: a try costs nothing
        try:
            found[run.llm][run.phase].append(run.time)
        except KeyError:
            found[run.llm] = [], [], []  # there is no phase 0
            found[run.llm][run.phase].append(run.time)
    return {phase: {llm: sorted(of[phase]) for llm, of in found.items() if of[phase]} for phase in (1, 2)}


def _check(data: bytes, found: int, day: int) -> None:
    if found != day:
        raise CorruptDay(f"it is of day {found}, by its name it should be of day {day} - at `$.day`")
    if not data.isascii():
        _check_unicode(data)
    _inside(data)


def _check_unicode(data: bytes) -> None:
    """Refuse bytes that are no text also where no key of ours looks at them."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise CorruptDay(str(error)) from error


def _inside(data: bytes) -> int:
    """Find where the entries begin, behind their bracket; refuse a key that stands twice."""
    ours = _OUR_HEAD.match(data)
    if ours and data.endswith(_TAIL) and data.find(b"]") == len(data) - len(_TAIL.lstrip()):
        return ours.end()  # as we write it: the only closing bracket is the last one, so that nothing follows
    return _walked(data)


def _walked(data: bytes) -> int:
    """Find the entries in a file of any layout, going from key to key."""
    at = data.index(b"{") + 1
    inside = 0
    for name, raw in _decode_members(data).items():
        value = bytes(raw)
        key = _KEY.match(data, at)
        if key is None or not data.startswith(value, key.end()):
            raise CorruptDay(f"a key stands twice - at byte {at}")
        if name == "entries":
            inside = key.end() + 1
        at = _end_of_space(data, key.end() + len(value)) + 1
    if data[at - 1 : at] != b"}":
        raise CorruptDay(f"a key stands twice - at byte {at}")
    return inside


def _end_of_space(data: bytes, at: int) -> int:
    space = _SPACE.match(data, at)
    return at if space is None else space.end()


def located(error: Exception, data: bytes) -> str:
    """Word why bytes could not be decoded, with the line where that is known only as a byte or as the end."""
    text = str(error)
    found = _BYTE.search(text)
    if found is None and _TRUNCATED not in text:
        return text
    line = data.count(b"\n", 0, int(found[1]) if found else len(data)) + 1
    return f"{text} - in line {line}"
