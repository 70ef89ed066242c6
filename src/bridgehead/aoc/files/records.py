"""Records: the runs of every day; only files that have changed are read again. Blocks."""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import heapq
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

from bridgehead.runtime.errors import StorageError

from . import day_document, layout
from .day_document import MAX_BYTES, CorruptDay, corrupt_file
from .entries import Entry, Group, moment_of
from .figures import Runs
from .filters import RunFilter, Skipped
from .history import PageCut
from .layout import Identity, identify
from .old_journal import waiting_entries
from .seals import Seals
from .snapshot import read_snapshot

MAX_KEPT = 300_000
"""Entries kept in memory, about 300 bytes each; days beyond that are read again for each query."""

Identities = tuple[Identity | None, Identity | None]
"""Of a day's file and of its journal of version 0.3."""


class DayRead(NamedTuple):
    """A day as it was at one moment."""

    data: bytes
    """The file; empty if there is none."""
    entries: list[Entry]
    """Newest first, those of a journal too."""
    waiting: list[bytes]
    """Entries that are only in a journal of version 0.3, newest first."""
    identities: Identities


def read_day(folder: str, day: int) -> DayRead | None:
    """Read a day; None if it has no records. Raises `StorageError` if the file is corrupt."""
    path = os.path.join(folder, layout.speeds_name(day))
    # Without a lock, so the order matters: journal first. If it is merged into the file between the two
    # reads, the file has its entries. Read the other way round, both could miss them.
    journal = read_snapshot(os.path.join(folder, layout.journal_name(day)), MAX_BYTES)
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None and journal is None:
        return None
    data, entries = b"" if stored is None else stored.data, []
    if stored is not None:
        try:
            entries = day_document.decode_day(data, day)
        except CorruptDay as problem:
            raise corrupt_file(path, problem) from problem
    waiting = [] if journal is None else waiting_entries(journal.data, data, entries)[::-1]
    identities = stored and stored.identity, journal and journal.identity
    return DayRead(
        data, [entry for _, entry in waiting] + entries, [bytes(raw) for raw, _ in waiting], identities
    )


def recorded_attempts(entries: Iterable[Entry]) -> set[str]:
    """Return the attempts that have a record, withdrawn or not."""
    details = (entry.details_key for entry in entries)
    names = (detail.get("attempt") for detail in details if isinstance(detail, dict))
    return {name for name in names if isinstance(name, str)}


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
    entries: Sequence[Entry] = ()
    """In files, the runs that were counted, by time, newest first."""


class RecordReader(Protocol):
    """Records in files (`Records`) or in PostgreSQL (`DatabaseRecords`). Blocks."""

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of the days that have any, or of one day."""
        ...

    def entries(self, days: Iterable[int], skipped: list[Skipped] | None = None) -> dict[int, list[Entry]]:
        """Return the entries of some days, as in their files. If `skipped` is None, a corrupt one raises."""
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


class _KnownDay(NamedTuple):
    """A day as it was read, with grades that its seals prove."""

    entries: list[Entry]
    """In the order of the file."""
    by_time: list[Entry]
    groups: dict[Group, Runs]
    counts: Counter[Group]
    identities: Identities


class Records:
    """The records of one year in files, open for reading."""

    def __init__(self, folder: str, seals: Seals | None = None) -> None:
        self._folder = folder
        self._seals = seals or Seals()
        self._known: dict[int, _KnownDay] = {}
        # Protects `_known`: boards are computed in threads, and only one may read a day.
        self._lock = threading.Lock()

    def runs(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayRuns]:
        """Return the runs of one day, or of all days that have any.

        A corrupt file raises if its day was asked for; otherwise it is added to `skipped`.
        """
        days = self._read_one_or_all(day, skipped)
        return {number: DayRuns(known.groups, known.identities) for number, known in days.items()}

    def run_counts(self, day: int | None, skipped: list[Skipped]) -> dict[int, DayCounts]:
        """Count the runs of each day, or of one day; corrupt files are treated as in `runs`."""
        days = self._read_one_or_all(day, skipped)
        return {
            number: DayCounts(known.counts, known.identities, entries=known.by_time)
            for number, known in days.items()
        }

    def newest_runs(
        self, days: Mapping[int, DayCounts], run_filter: RunFilter, cut: PageCut
    ) -> list[tuple[int, Entry]]:
        """Return the runs of a page that pass a filter, newest first, with their days."""

        def passing(day: int, counted: DayCounts) -> Iterable[tuple[int, int, Entry]]:
            for entry in counted.entries:
                if run_filter.passes(Group(entry.llm, entry.phase, entry.measure, entry.grade)):
                    yield -moment_of(entry.timestamp), day, entry

        # Of runs with the same moment, those of an earlier day and of an earlier line are the newer ones.
        merged = heapq.merge(*(passing(*day) for day in sorted(days.items())), key=lambda run: run[0])
        return [(day, entry) for _, day, entry in islice(merged, cut.newer, cut.newer + cut.size)]

    def entries(self, days: Iterable[int], skipped: list[Skipped] | None = None) -> dict[int, list[Entry]]:
        """Return the entries of some days, as in their files. If `skipped` is None, a corrupt one raises."""
        return {day: known.entries for day, known in self._read_days(days, skipped).items()}

    def attempts(self, day: int) -> set[str]:
        """Return the attempts that have a record on a day, withdrawn or not."""
        known = self._read_day(day)
        return set() if known is None else recorded_attempts(known.entries)

    def days(self) -> list[int]:
        """List the days that have records."""
        return [day for day in layout.DAYS if self._identify(day) != (None, None)]

    def path(self, day: int) -> str:
        """Return the path of a day's records."""
        return os.path.join(self._folder, layout.speeds_name(day))

    def _read_one_or_all(self, day: int | None, skipped: list[Skipped]) -> dict[int, _KnownDay]:
        return self._read_days(layout.DAYS, skipped) if day is None else self._read_days((day,), None)

    def _read_days(self, days: Iterable[int], skipped: list[Skipped] | None) -> dict[int, _KnownDay]:
        read: dict[int, _KnownDay] = {}
        for day in days:
            try:
                known = self._read_day(day)
            except StorageError as problem:
                if skipped is None:
                    raise
                skipped.append(Skipped(self.path(day), problem.message))
                continue
            if known is not None:
                read[day] = known
        return read

    def _identify(self, day: int) -> Identities:
        journal = os.path.join(self._folder, layout.journal_name(day))
        return identify(self.path(day)), identify(journal)

    def _read_day(self, day: int) -> _KnownDay | None:
        with self._lock:
            known = self._known.get(day)
            if known is not None and known.identities == self._identify(day):
                return known
            self._known.pop(day, None)
            day_read = read_day(self._folder, day)
            if day_read is None:
                return None
            entries = day_read.entries
            self._seals.demote(day, entries)
            groups = day_document.group_entries(entries)
            # Lines are nearly in order, but other programs and imports need not keep to it. A stable sort.
            by_time = sorted(entries, key=lambda entry: moment_of(entry.timestamp), reverse=True)
            counts = Counter(Group(entry.llm, entry.phase, entry.measure, entry.grade) for entry in entries)
            known = _KnownDay(entries, by_time, groups, counts, day_read.identities)
            if len(entries) + sum(len(other.entries) for other in self._known.values()) <= MAX_KEPT:
                self._known[day] = known
            return known
