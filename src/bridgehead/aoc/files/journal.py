"""Journal: entries of a large day file that are on the disk but not in the file yet. Pure; no disk here.

Rewriting a file of 30 MB for each record takes 185 ms. Above `JOURNAL_FROM_BYTES` new entries are appended
to a journal beside the file instead, one JSON object a line, and folded into the file when nobody records.
Its first line says of which file it goes on. A kill between writing the file and removing the journal leaves
both: then the file is not that one any more, and only the entries count that it does not have.
"""

from __future__ import annotations

import zlib
from collections import Counter

import msgspec
from msgspec import Struct

from .entries import Entry, NewEntry

JOURNAL_FROM_BYTES = 1024 * 1024
"""Up to here the file itself is written before the answer; it takes less than two flushes to the disk do."""
MAX_JOURNAL_BYTES = 4 * 1024 * 1024
"""A journal this long is folded in also where nobody pauses."""


class Base(Struct):
    """The file that a journal goes on from: its size, its checksum, and where in it the next entry goes."""

    day: int
    size: int
    crc: int
    inside: int

    def matches(self, data: bytes) -> bool:
        """Tell whether a file is still the one that the journal goes on from."""
        return self.size == len(data) and self.crc == zlib.crc32(data)


_decode_entry = msgspec.json.Decoder(Entry).decode
_decode_base = msgspec.json.Decoder(Base).decode


def begin_journal(day: int, data: bytes, inside: int) -> bytes:
    """Write the first line of a journal for a file."""
    return msgspec.json.encode(Base(day, len(data), zlib.crc32(data), inside)) + b"\n"


def encode_lines(lines: list[bytes]) -> bytes:
    """Write entries for a journal, from the oldest to the newest."""
    return b"".join(line + b"\n" for line in lines)


class Journal(Struct):
    """A journal as it was read, from the oldest entry to the newest."""

    base: Base
    entries: list[Entry]

    def pending(self, data: bytes, entries: list[Entry]) -> list[Entry]:
        """Return the entries that are not in the file, which is given as bytes and as its entries."""
        if self.base.matches(data):
            return self.entries
        there = Counter((e.llm, e.phase, e.time, e.timestamp) for e in entries)
        missing: list[Entry] = []
        for entry in self.entries:
            key = (entry.llm, entry.phase, entry.time, entry.timestamp)
            if there[key]:
                there[key] -= 1
            else:
                missing.append(entry)
        return missing


def decode_journal(data: bytes) -> Journal | None:
    """Decode a journal; None where not even its first line was written whole.

    A last line without its end is of a writer that was killed before it answered, and does not count.
    """
    first, *lines = data[: data.rfind(b"\n") + 1].split(b"\n")
    try:
        base = _decode_base(first)
    except msgspec.DecodeError:
        return None
    return Journal(base, decode_lines(lines))


def decode_lines(lines: list[bytes]) -> list[Entry]:
    """Decode whole lines of a journal; one that was cut short by a kill, and then written on, is skipped."""
    entries: list[Entry] = []
    for line in lines:
        try:
            entries.append(_decode_entry(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return entries


def as_new(entry: Entry) -> NewEntry:
    """Return a journal's entry as it is written into the file."""
    return NewEntry(
        entry.llm,
        entry.phase,
        entry.time,
        entry.timestamp,
        None if entry.measure_key is None else entry.measure,
        None if entry.source_key is None else entry.source,
    )
