"""Journal: entries of a large day file that are on the disk but not in the file yet. Pure; no disk here.

Rewriting a file of 30 MB for each record takes 185 ms. Above `JOURNAL_FROM_BYTES` new entries are appended to
a journal beside the file instead, one JSON object a line, and folded into the file once no more records
arrive. Its first line identifies the file that it extends. After a kill between writing the file and removing
the journal both exist: the file no longer matches, and only entries that it lacks count.
"""

from __future__ import annotations

import zlib
from collections import Counter

import msgspec
from msgspec import Struct, field

from .entries import CLAIMED, Entry, NewEntry

JOURNAL_FROM_BYTES = 256 * 1024
"""Below this size, about 2,300 records, the whole file is replaced, so that others see a record at once.

Replacing 1 MB takes twice the CPU time of replacing an empty file (`python -m bench.aoc.names`).
"""
MAX_JOURNAL_BYTES = 4 * 1024 * 1024
"""A longer journal is folded even if records keep coming."""


class Base(Struct):
    """The file that a journal extends: size, checksum, and the offset at which the next entry is inserted."""

    day: int
    size: int
    crc: int
    insert_at: int = field(name="inside")

    def matches(self, data: bytes) -> bool:
        """Return whether a file is still the one that the journal extends."""
        return self.size == len(data) and self.crc == zlib.crc32(data)


_decode_entry = msgspec.json.Decoder(Entry).decode
_decode_base = msgspec.json.Decoder(Base).decode


def begin_journal(day: int, data: bytes, insert_at: int) -> bytes:
    """Return the first line of a journal for a file."""
    return msgspec.json.encode(Base(day, len(data), zlib.crc32(data), insert_at)) + b"\n"


class Journal(Struct):
    """A decoded journal, oldest entry first."""

    base: Base
    entries: list[Entry]

    def pending(self, data: bytes, entries: list[Entry]) -> list[Entry]:
        """Return the entries that are not in the file, given as its bytes and its decoded entries."""
        if self.base.matches(data):
            return self.entries
        # Counted, not a set: two equal records are two records.
        stored = Counter((e.llm, e.phase, e.time, e.timestamp) for e in entries)
        missing: list[Entry] = []
        for entry in self.entries:
            key = (entry.llm, entry.phase, entry.time, entry.timestamp)
            if stored[key]:
                stored[key] -= 1
            else:
                missing.append(entry)
        return missing


def decode_journal(data: bytes) -> Journal | None:
    """Decode a journal; None if its first line is torn.

    A last line without a line feed is from a writer killed before it answered, and does not count.
    """
    first, *lines = data[: data.rfind(b"\n") + 1].split(b"\n")
    try:
        base = _decode_base(first)
    except msgspec.DecodeError:
        return None
    return Journal(base, decode_lines(lines))


def decode_lines(lines: list[bytes]) -> list[Entry]:
    """Decode lines of a journal; skip one that a kill cut short before another writer went on."""
    entries: list[Entry] = []
    for line in lines:
        try:
            entries.append(_decode_entry(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return entries


def as_new(entry: Entry) -> NewEntry:
    """Convert a journal's entry for writing into the file."""
    return NewEntry(
        entry.llm,
        entry.phase,
        entry.time,
        entry.timestamp,
        None if entry.measure_key is None else entry.measure,
        CLAIMED if entry.grade_key is None else entry.grade_key,
        entry.details_key,
        entry.seal,
        entry.source_key,
    )
