"""Records: the runs of every day; only files that have changed are read again. Blocks."""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from bridgehead.runtime.errors import StorageError

from ..ranking.board import Skipped
from ..ranking.figures import Runs
from . import day_document, journal, layout
from .day_document import MAX_BYTES, CorruptDay, corrupt_file
from .entries import CLAIMED, Entry, Group
from .names import canonical_name
from .seals import Seals
from .snapshot import Identity, identify, read_snapshot


class DayRead(NamedTuple):
    """A day's file and its journal as they were at one moment."""

    data: bytes
    entries: list[Entry]
    """The entries of the file; empty if it was not decoded."""
    insert_at: int
    identity: Identity | None
    pending: list[Entry]
    """Entries that are only in the journal, oldest first."""
    journal_identity: Identity | None

    @property
    def all_entries(self) -> list[Entry]:
        """File and journal together, newest first."""
        return self.pending[::-1] + self.entries if self.pending else self.entries


def read_day(folder: str, day: int, *, is_decoded: bool = True) -> DayRead | None:
    """Read a day; None if it has no records. Raises `StorageError` if the file is corrupt."""
    path = os.path.join(folder, layout.speeds_name(day))
    # Without a lock, so the order matters: journal first. If it is folded between the two reads, the file has
    # its entries and no longer matches the journal's base. Read the other way round, both could miss them.
    stored_journal = read_snapshot(os.path.join(folder, layout.journal_name(day)), MAX_BYTES)
    stored = read_snapshot(path, MAX_BYTES)
    waiting = None if stored_journal is None else journal.decode_journal(stored_journal.data)
    identity = None if waiting is None or stored_journal is None else stored_journal.identity
    if stored is None:
        # The file was moved away. Entries that are only in the journal stay and begin a new file.
        empty = day_document.empty_document(day)
        new = None if waiting is None else waiting.entries
        return None if new is None else DayRead(empty.data, [], len(empty.head), None, new, identity)
    if not is_decoded and waiting is not None and waiting.base.matches(stored.data):
        return DayRead(stored.data, [], waiting.base.insert_at, stored.identity, waiting.entries, identity)
    try:
        decoded = day_document.decode_day(stored.data, day)
    except CorruptDay as problem:
        raise corrupt_file(path, problem) from problem
    pending = [] if waiting is None else waiting.pending(stored.data, decoded.entries)
    return DayRead(stored.data, decoded.entries, decoded.insert_at, stored.identity, pending, identity)


def recorded_attempts(day: DayRead | None) -> set[str]:
    """Return the attempts that have a record, withdrawn or not."""
    details = (entry.details_key for entry in ([] if day is None else day.all_entries))
    names = (found.get("attempt") for found in details if isinstance(found, dict))
    return {name for name in names if isinstance(name, str)}


def read_journal_tail(path: str, before: Identity | None) -> tuple[list[Entry], Identity] | None:
    """Read the entries appended since the journal had the identity `before` (None: it did not exist).

    Return None if the journal has changed in any other way than by growing.
    """
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        return None
    if before is None:
        whole = journal.decode_journal(stored.data)
        return None if whole is None else (whole.entries, stored.identity)
    if before.inode != stored.identity.inode or len(stored.data) < before.size:
        return None
    # Start at a line's beginning: the last line may have been half written at the previous read.
    start = stored.data.rfind(b"\n", 0, before.size) + 1
    tail = stored.data[start : stored.data.rfind(b"\n") + 1]
    return journal.decode_lines(tail.split(b"\n")), stored.identity


class DayRuns(NamedTuple):
    """The runs of one day, by group."""

    groups: dict[Group, Runs]
    identity: object
    """Changes when the runs do."""


class RecordReader(Protocol):
    """Records in files (`Records`) or in PostgreSQL (`DatabaseRecords`). Blocks."""

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of the days that have any, or of one day."""
        ...

    def entries(self, days: Iterable[int], skipped: list[Skipped] | None = None) -> dict[int, list[Entry]]:
        """Return the entries of some days, newest first."""
        ...

    def attempts(self, day: int) -> set[str]:
        """Return the attempts that have a record on a day, withdrawn or not."""
        ...

    def days(self) -> list[int]:
        """List the days that have records."""
        ...


class _FileRuns(NamedTuple):
    groups: dict[Group, Runs]
    identity: tuple[Identity | None, Identity | None]


class Records:
    """The records of one year in files, open for reading."""

    def __init__(self, folder: str, seals: Seals | None = None) -> None:
        self._folder = folder
        self._seals = seals or Seals()
        self._read: dict[int, _FileRuns] = {}
        # Protects `_read`: boards are computed in threads, and only one at a time may read or extend a day.
        self._lock = threading.Lock()

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of one day, or of all days that have any.

        A corrupt file raises if its day was asked for; otherwise it is added to `skipped`.
        """
        if day is not None:
            found = self._of_day(day)
            return {} if found is None else {day: DayRuns(*found)}
        read: dict[int, DayRuns] = {}
        for number in layout.DAYS:
            try:
                of_day = self._of_day(number)
            except StorageError as problem:
                skipped.append(Skipped(self.path(number), problem.message))
                continue
            if of_day is not None:
                read[number] = DayRuns(*of_day)
        return read

    def _of_day(self, day: int) -> _FileRuns | None:
        with self._lock:
            identity = (
                identify(self.path(day)),
                identify(os.path.join(self._folder, layout.journal_name(day))),
            )
            known = self._read.get(day)
            if known is not None and known.identity == identity:
                return known
            if known is not None and known.identity[0] == identity[0]:
                grown = self._read_on(day, known)
                if grown is not None:
                    return grown
            found = read_day(self._folder, day)
            if found is None:
                self._read.pop(day, None)
                return None
            self._seals.demote(day, found.all_entries)
            groups = day_document.group_entries(found.all_entries)
            known = self._read[day] = _FileRuns(groups, (found.identity, found.journal_identity))
            return known

    def _read_on(self, day: int, known: _FileRuns) -> _FileRuns | None:
        """Add the journal's new entries, so that a large day is not decoded again for each record."""
        path = os.path.join(self._folder, layout.journal_name(day))
        tail = read_journal_tail(path, known.identity[1])
        if tail is None:
            return None
        entries, identity = tail
        self._seals.demote(day, entries)
        gained: dict[Group, Runs] = {}
        for entry in entries:
            group = Group(canonical_name(entry.llm), entry.phase, entry.measure, entry.grade)
            gained.setdefault(group, Runs([])).add(entry.time, is_claimed=entry.grade == CLAIMED)
        # A copy: another thread may be computing a board from the old one.
        groups = dict(known.groups)
        for group, runs in gained.items():
            groups[group] = groups[group].merged(runs) if group in groups else runs
        grown = self._read[day] = _FileRuns(groups, (known.identity[0], identity))
        return grown

    def entries(self, days: Iterable[int], skipped: list[Skipped] | None = None) -> dict[int, list[Entry]]:
        """Return the entries of some days, newest first. If `skipped` is None, a corrupt file raises."""
        read: dict[int, list[Entry]] = {}
        for day in days:
            try:
                found = read_day(self._folder, day)
            except StorageError as problem:
                if skipped is None:
                    raise
                skipped.append(Skipped(self.path(day), problem.message))
                continue
            if found is not None:
                read[day] = found.all_entries
                self._seals.demote(day, read[day])
        return read

    def attempts(self, day: int) -> set[str]:
        """Return the attempts that have a record on a day, withdrawn or not."""
        return recorded_attempts(read_day(self._folder, day))

    def days(self) -> list[int]:
        """List the days that have records."""
        return [day for day in layout.DAYS if identify(self.path(day)) is not None]

    def path(self, day: int) -> str:
        """Return the path of a day's records."""
        return os.path.join(self._folder, layout.speeds_name(day))
