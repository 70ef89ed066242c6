"""Old journal: entries that version 0.3 put on the disk, but not into the day's file yet. Pure.

Version 0.3 appended the records of a large day to `.day01.journal`, one JSON object a line, and merged them
into the file later. Readers count them; the next writer of the day puts them into the file, under its lock.
The first line identifies the file that the journal extends. After a kill between writing the file and
removing the journal both exist: then only entries that the file lacks count.
"""

from __future__ import annotations

import zlib
from collections import Counter

import msgspec
from msgspec import Raw, Struct

from .entries import Entry


class _Base(Struct):
    """The file that a journal extends."""

    size: int
    crc: int


_decode_base = msgspec.json.Decoder(_Base).decode
_decode_entry = msgspec.json.Decoder(Entry).decode


def waiting_entries(journal: bytes, file: bytes, entries: list[Entry]) -> list[tuple[Raw, Entry]]:
    """Return the entries of a journal that are not in the file, oldest first, each with its bytes."""
    # A last line without a line feed is from a writer that was killed before it answered.
    first, *lines = journal[: journal.rfind(b"\n") + 1].split(b"\n")
    try:
        base = _decode_base(first)
    except msgspec.DecodeError:
        return []  # torn while it was begun: none of its records was acknowledged
    waiting: list[tuple[Raw, Entry]] = []
    for line in lines:
        try:
            waiting.append((Raw(line), _decode_entry(line)))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut short by a kill before another writer went on
    if base.size == len(file) and base.crc == zlib.crc32(file):
        return waiting
    # Counted, not a set: two equal records are two records.
    stored = Counter((e.llm, e.phase, e.time, e.timestamp) for e in entries)
    missing: list[tuple[Raw, Entry]] = []
    for raw, entry in waiting:
        key = (entry.llm, entry.phase, entry.time, entry.timestamp)
        if stored[key]:
            stored[key] -= 1
        else:
            missing.append((raw, entry))
    return missing
