"""Records: the runs of every day; only files that have changed are read again. Blocks."""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from bridgehead.runtime.errors import StorageError, Unavailable

from . import day_document, journal, layout
from .day_document import MAX_BYTES, CorruptDay, corrupt_file
from .entries import CLAIMED, Entry, Group
from .figures import Runs
from .filters import Skipped
from .history import PageCut
from .layout import Identity, identify
from .names import canonical_name
from .seals import Seals
from .snapshot import read_parts, read_snapshot
from .timeline import RunFilter, Timeline, newest

T = TypeVar("T")

MAX_READS = 10
"""Attempts to read a page while files are being replaced."""


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
        # The file was moved away. Entries that are only in the journal are kept and start a new file.
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
    names = (detail.get("attempt") for detail in details if isinstance(detail, dict))
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


class DayCounts(NamedTuple):
    """How many runs of each group a day has, withdrawn ones too; names are as recorded."""

    counts: Mapping[Group, int]
    revision: Any
    """Changes when the runs do; in a database it is the day's."""
    rewritten: int = 0
    """In a database, the last revision that did more than add newer runs."""


class RecordReader(Protocol):
    """Records in files (`Records`) or in PostgreSQL (`DatabaseRecords`). Blocks."""

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of the days that have any, or of one day."""
        ...

    def entries(self, days: Iterable[int], skipped: list[Skipped] | None = None) -> dict[int, list[Entry]]:
        """Return the entries of some days, newest first."""
        ...

    def run_counts(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayCounts]:
        """Count the runs of each day that has any, or of one day."""
        ...

    def newest_runs(
        self, days: Mapping[int, DayCounts], run_filter: RunFilter, cut: PageCut
    ) -> list[tuple[int, Entry]]:
        """Return the runs of a page that pass a filter, newest first, with their days."""
        ...

    def attempts(self, day: int) -> set[str]:
        """Return the attempts that have a record on a day, withdrawn or not."""
        ...

    def days(self) -> list[int]:
        """List the days that have records."""
        ...


class _FileTimeline(NamedTuple):
    timeline: Timeline
    identity: tuple[Identity | None, Identity | None]
    data: bytes | None = None
    """The file, if it has just been read."""


class _FileRuns(NamedTuple):
    groups: dict[Group, Runs]
    identity: tuple[Identity | None, Identity | None]


class Records:
    """The records of one year in files, open for reading."""

    def __init__(self, folder: str, seals: Seals | None = None) -> None:
        self._folder = folder
        self._seals = seals or Seals()
        self._read: dict[int, _FileRuns] = {}
        self._timelines: dict[int, _FileTimeline] = {}
        # Protects `_read` and `_timelines`: boards are computed in threads, and only one may read or extend a
        # day.
        self._lock = threading.Lock()

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of one day, or of all days that have any.

        A corrupt file raises if its day was asked for; otherwise it is added to `skipped`.
        """
        read = self._read_days(day, skipped, self._of_day)
        return {number: DayRuns(*day_state) for number, day_state in read.items()}

    def _read_days(
        self, day: int | None, skipped: list[Skipped], read_one: Callable[[int], T | None]
    ) -> dict[int, T]:
        if day is not None:
            day_read = read_one(day)
            return {} if day_read is None else {day: day_read}
        read: dict[int, T] = {}
        for number in layout.DAYS:
            try:
                day_read = read_one(number)
            except StorageError as problem:
                skipped.append(Skipped(self.path(number), problem.message))
                continue
            if day_read is not None:
                read[number] = day_read
        return read

    def _identify(self, day: int) -> tuple[Identity | None, Identity | None]:
        journal_path = os.path.join(self._folder, layout.journal_name(day))
        return identify(self.path(day)), identify(journal_path)

    def _of_day(self, day: int) -> _FileRuns | None:
        with self._lock:
            identity = self._identify(day)
            known = self._read.get(day)
            if known is not None and known.identity == identity:
                return known
            if known is not None and known.identity[0] == identity[0]:
                grown = self._read_on(day, known)
                if grown is not None:
                    return grown
            day_read = read_day(self._folder, day)
            if day_read is None:
                self._read.pop(day, None)
                return None
            self._seals.demote(day, day_read.all_entries)
            groups = day_document.group_entries(day_read.all_entries)
            known = self._read[day] = _FileRuns(groups, (day_read.identity, day_read.journal_identity))
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

    # --- single runs ---------------------------------------------------------------------------------------

    def run_counts(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayCounts]:
        """Count the runs of each day, or of one day; corrupt files are treated as in `runs`."""
        read = self._read_days(day, skipped, self._timeline)
        return {
            number: DayCounts(day_state.timeline.counts, day_state.identity)
            for number, day_state in read.items()
        }

    def newest_runs(
        self, days: Mapping[int, DayCounts], run_filter: RunFilter, cut: PageCut
    ) -> list[tuple[int, Entry]]:
        """Return the runs of a page that pass a filter, newest first, with their days."""
        for _ in range(MAX_READS):
            read = {day: timeline for day in days if (timeline := self._timeline(day)) is not None}
            orders = {day: day_state.timeline.order(run_filter) for day, day_state in read.items()}
            page = newest(orders, cut)
            entries = {
                day: self._read_entries(day, day_state, [place for run_day, place in page if run_day == day])
                for day, day_state in read.items()
            }
            # Lines move when a file is replaced, so read the page again.
            if None not in entries.values():
                in_turn = {day: iter(day_entries or ()) for day, day_entries in entries.items()}
                return [(day, next(in_turn[day])) for day, _ in page]
        raise Unavailable(
            f"The records in {self._folder} kept changing while they were read.",
            next_step="Ask again in a moment.",
            path=self._folder,
        )

    def _read_entries(self, day: int, day_state: _FileTimeline, places: list[int]) -> list[Entry] | None:
        """Read the lines of some runs; None if the file is no longer the same."""
        timeline = day_state.timeline
        spans = [timeline.span(place) for place in places]
        in_file = [span for span in spans if span[1] > span[0]]
        lines: list[bytes] | None = []
        if day_state.data is not None:
            lines = [day_state.data[start:end] for start, end in in_file]
        elif in_file and day_state.identity[0] is not None:
            lines = read_parts(self.path(day), day_state.identity[0], in_file)
        if lines is None:
            return None
        decoded = iter(journal.decode_lines(lines))
        entries = [next(decoded) if end > start else timeline.pending[start] for start, end in spans]
        for place, entry in zip(places, entries, strict=True):
            entry.grade_key = timeline.group(place).grade  # a line whose seal does not fit is claimed
        return entries

    def _timeline(self, day: int) -> _FileTimeline | None:
        with self._lock:
            identity = self._identify(day)
            known = self._timelines.get(day)
            if known is not None and known.identity == identity:
                return known
            if known is not None and known.identity[0] == identity[0]:
                path = os.path.join(self._folder, layout.journal_name(day))
                tail = read_journal_tail(path, known.identity[1])
                if tail is not None:
                    entries, in_journal = tail
                    self._seals.demote(day, entries)
                    longer = known.timeline.with_newer(entries)
                    known = self._timelines[day] = _FileTimeline(longer, (identity[0], in_journal))
                    return known
            self._timelines.pop(day, None)
            day_read = read_day(self._folder, day)
            if day_read is None:
                return None
            self._seals.demote(day, day_read.all_entries)
            spans = list(day_document.spans_of_entries(day_read.data)) if day_read.entries else []
            timeline = Timeline().with_newer(day_read.entries[::-1], spans[::-1]).with_newer(day_read.pending)
            new = _FileTimeline(timeline, (day_read.identity, day_read.journal_identity), day_read.data)
            self._timelines[day] = new._replace(data=None)
            return new

    def entries(self, days: Iterable[int], skipped: list[Skipped] | None = None) -> dict[int, list[Entry]]:
        """Return the entries of some days, newest first. If `skipped` is None, a corrupt file raises."""
        read: dict[int, list[Entry]] = {}
        for day in days:
            try:
                day_read = read_day(self._folder, day)
            except StorageError as problem:
                if skipped is None:
                    raise
                skipped.append(Skipped(self.path(day), problem.message))
                continue
            if day_read is not None:
                read[day] = day_read.all_entries
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
