"""Day file: the records of one day on disk, written by this process and maybe by others. Blocks.

Every write holds the folder's lock, checks whether the file is still the one that the last write left (and
reads it again if not), and replaces it as a whole: write beside, flush, rename. A kill at any moment leaves
the old file or the new one. As long as this process is the only writer, a write neither reads nor decodes the
file. A journal that version 0.3 has left, or writes at the same time, is put into the file by the next write.
"""

# ruff: noqa: PTH110, PTH116, PTH118 - one way to write a path in this package

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import InvalidArgument, NotFound, StorageError
from bridgehead.runtime.timing import Clock

from . import day_document, layout
from .day_document import DayDocument
from .entries import (
    CLAIMED,
    GRADES,
    RANKED,
    Entry,
    Group,
    NewEntry,
    RecordKey,
    Wanted,
    format_timestamp,
    id_of,
)
from .figures import Figures, Runs, figures
from .layout import Identity, identify
from .locking import FolderLock
from .names import canonical_name, fold_name
from .records import DayRead, read_day, recorded_attempts
from .seals import Seals

_READABLE = 0o666
"""Mode of a new file, before the umask."""
_GROUP = 0o060
_GROUP_WRITES = 0o020


class Recorded(NamedTuple):
    """A stored record, with the figures of the runs it counts among."""

    entry: NewEntry
    figures: Figures
    """Of the runs with the same LLM, day, phase and measure, of any grade."""
    average: int
    """In milliseconds, over both phases of the same LLM and day; rounded down, as in the contract."""


class _CachedDay(Struct):
    """A day's file as this process last saw it."""

    runs: dict[Group, Runs]
    attempts: set[str]
    """The attempts that have a record."""
    document: DayDocument
    identity: Identity | None


def take_run(groups: dict[Group, Runs], entry: NewEntry) -> Recorded:
    """Count a record that has just been stored."""
    group = entry.group
    runs = groups.get(group)
    if runs is None:
        runs = groups[group] = Runs([])
    runs.add(entry.time, is_claimed=group.grade == CLAIMED)
    return describe_run(groups, entry)


def describe_run(groups: dict[Group, Runs], entry: NewEntry) -> Recorded:
    """Return the figures for a record that is already counted."""
    group = entry.group
    llm, phase, measure, _ = group
    # Constructed directly: `_replace` takes five times as long, and every record does this six times.
    same = [runs for grade in GRADES if (runs := groups.get(Group(llm, phase, measure, grade)))]
    # If the record was withdrawn since, its group may be empty: use the record alone.
    same = same or [Runs([entry.time])]
    both = same + [runs for grade in GRADES if (runs := groups.get(Group(llm, 3 - phase, measure, grade)))]
    total = n = 0
    for runs in both:
        total += runs.total
        n += len(runs.ordered)
    return Recorded(entry, figures(same), total // n)


class DayFile:
    """The file of one day."""

    def __init__(
        self,
        lock: FolderLock,
        day: int,
        clock: Clock,
        key: RecordKey = "speedMs",
        seals: Seals | None = None,
    ) -> None:
        self._lock = lock
        self._seals = seals or Seals()
        self._day = day
        self._clock = clock
        self._key: RecordKey = key
        self._path = os.path.join(lock.folder, layout.speeds_name(day))
        self._journal_path = os.path.join(lock.folder, layout.journal_name(day))
        self._cached: _CachedDay | None = None

    def append(self, entries: list[NewEntry]) -> list[Recorded]:
        """Write records, oldest first: all of them, or none and an error."""
        # Only a record above claimed has a seal.
        entries = [
            self._seals.sign_entry(self._day, entry) if entry.grade in RANKED else entry for entry in entries
        ]
        try:
            with self._lock.held(self._path):
                cached = self._read_cached()
                new = _leave_out_recorded(entries, cached.attempts)
                if not new:
                    return [describe_run(cached.runs, entry) for entry in entries]
                # Dropped until the write succeeds: after a failure, memory and disk may differ.
                self._cached = None
                lines = [day_document.encode_entry(entry, self._key) for entry in reversed(new)]
                cached.document = cached.document.with_new(lines)
                self._write(cached.document.data)
                cached.identity = identify(self._path)
        except OSError as failure:
            raise self._unwritable(failure) from failure
        cached.attempts.update(entry.attempt for entry in new if entry.attempt is not None)
        self._cached = cached
        is_new = set(map(id, new))
        return [
            take_run(cached.runs, entry) if id(entry) in is_new else describe_run(cached.runs, entry)
            for entry in entries
        ]

    def withdraw(self, wanted: Wanted) -> Entry:
        """Mark a record as withdrawn, or remove the mark of one that is; it stays in the file either way.

        Raises `NotFound`, or `InvalidArgument` if several records have the timestamp.
        """
        try:
            with self._lock.held(self._path):
                self._cached = None
                day = read_day(self._lock.folder, self._day)
                entries = [] if day is None else day.entries
                place = choose_record(self._day, wanted, entries)
                if day is not None:
                    raws = _raw_entries(day)
                    mark = msgspec.json.encode(format_timestamp(self._clock.now()))
                    record = msgspec.json.decode(raws[place], type=dict[str, Raw])
                    record.pop("withdrawn", None)
                    if not wanted.is_withdrawn:
                        record["withdrawn"] = Raw(mark)
                    raws[place] = msgspec.json.encode(record)
                    self._write(self._document(day, raws).data)
                return entries[place]
        except OSError as failure:
            raise self._unwritable(failure) from failure

    def take_in_journal(self) -> None:
        """Put the records that version 0.3 has left in a journal into the file."""
        # Looked for before the lock is taken: most days have none.
        if not os.path.exists(self._journal_path):
            return
        try:
            with self._lock.held(self._path):
                self._cached = None
                day = read_day(self._lock.folder, self._day)
                if day is not None and day.waiting:
                    self._write(self._document(day, _raw_entries(day)).data)
                durable.remove(Path(self._journal_path))
        except OSError as failure:
            raise self._unwritable(failure) from failure

    def _read_cached(self) -> _CachedDay:
        """Return the day as it is on disk; read it again only if another process has written since."""
        cached = self._cached
        is_current = cached is not None and cached.identity == identify(self._path)
        if cached is not None and is_current and not os.path.exists(self._journal_path):
            return cached
        # Another writer was here and may have been killed. All writers hold the lock, so no temporary file is
        # in use now.
        durable.sweep(Path(self._lock.folder), self._clock.now(), age=-1)
        day = read_day(self._lock.folder, self._day)
        if day is None:
            return _CachedDay({}, set(), day_document.empty_document(self._day), None)
        # Grades need no check here: the figures of a record are of all grades together.
        runs, attempts = day_document.group_entries(day.entries), recorded_attempts(day.entries)
        document = self._document(day, _raw_entries(day))
        return _CachedDay(runs, attempts, document, day.identities[0])

    def _document(self, day: DayRead, entries: list[bytes]) -> DayDocument:
        if not day.data:  # the file was moved away, and a journal is left
            return day_document.empty_document(self._day).with_new(entries)
        return day_document.open_document(day.data, entries)

    def _write(self, data: bytes) -> None:
        self._check_room(len(data))
        path = self._path
        like: os.stat_result | None = None  # its mode and group, which the new file keeps
        try:
            like = os.lstat(path)
            if stat.S_ISLNK(like.st_mode):
                path = os.path.realpath(path)  # replace what a symbolic link points to, not the link
                like = None
                like = os.stat(path)
        except FileNotFoundError:
            pass
        share = self._share() if like is None else 0
        durable.replace(Path(path), data, mode=_READABLE, like=like, share=share)
        # The document contains its entries. After a kill before this line, the next reader sees that.
        if os.path.exists(self._journal_path):
            durable.remove(Path(self._journal_path))

    def _share(self) -> int:
        """Return group rights for a new file: in a group-writable folder they override the umask."""
        return _GROUP if os.stat(self._lock.folder).st_mode & _GROUP_WRITES else 0

    def _check_room(self, size: int) -> None:
        if size > day_document.MAX_BYTES:
            raise StorageError(
                f"{self._path} is full: the limit is {day_document.MAX_BYTES:,} bytes. Nothing was recorded.",
                next_step="Move it away to begin a new one.",
                path=self._path,
            )

    def _unwritable(self, failure: OSError) -> StorageError:
        """Name the day's file, and in brackets the path that failed if that is another one."""
        culprit = str(failure.filename or "")
        if Path(culprit).name.startswith("."):  # a temporary file: name its folder, which refuses it
            culprit = self._lock.folder
        where = f" ({culprit})" if culprit and culprit != self._path else ""
        return StorageError(
            f"{self._path} cannot be written: {failure.strerror or failure}{where}. Nothing was recorded.",
            next_step="Make room or give this user the right to write there, then record again.",
            path=self._path,
        )


def choose_record(day: int, wanted: Wanted, entries: list[Entry]) -> int:
    """Return the place of the record that is meant; of equal ones the newest, which is first."""
    places = [
        place
        for place, entry in enumerate(entries)
        if entry.is_withdrawn == wanted.is_withdrawn
        and wanted.phase in {None, entry.phase}
        and wanted.timestamp in {None, entry.timestamp}
        and (wanted.llm is None or fold_name(canonical_name(entry.llm)) == fold_name(wanted.llm))
        and (wanted.id is None or id_of(day, entry) == wanted.id)
    ]
    if not places:
        raise NotFound(
            f"Day {day} has no record {wanted}.",
            next_step="speed_history lists records with their ids and timestamps.",
        )
    if wanted.owner is not None:
        places = [place for place in places if entries[place].details.caller == wanted.owner]
        if not places:
            raise InvalidArgument(
                "The record was made by somebody else.",
                next_step="Only who made it, or the operator, can withdraw it or count it again.",
            )
    choices = {id_of(day, entries[place]): f"{entries[place].time} ms" for place in places}
    if len(choices) > 1:
        listed = ", ".join(f"{record} ({time})" for record, time in choices.items())
        raise InvalidArgument(
            f"Day {day} has {len(choices)} records {wanted}.", next_step=f"Name one by its id: {listed}."
        )
    return places[0]


def _raw_entries(day: DayRead) -> list[bytes]:
    """Return the bytes of all entries, newest first."""
    return day.waiting + (day_document.raw_entries(day.data) if day.data else [])


def _leave_out_recorded(entries: list[NewEntry], recorded: set[str]) -> list[NewEntry]:
    """Drop entries of attempts that already have a record: clients repeat calls whose answer was lost."""
    seen = set(recorded)
    new: list[NewEntry] = []
    for entry in entries:
        if entry.attempt is None or entry.attempt not in seen:
            new.append(entry)
            seen |= set() if entry.attempt is None else {entry.attempt}
    return new
