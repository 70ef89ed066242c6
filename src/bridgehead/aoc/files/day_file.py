"""Day file: the records of one day on disk, written by this process and maybe by others. Blocks.

Every write holds the folder's lock, checks whether the file is still the one that the last write left (and
reads it again if not), and replaces it as a whole: write beside, flush, rename. A kill at any moment leaves
the old file or the new one. Above 256 KB, records are appended to a journal, which is merged into the file
once no more records arrive. As long as this process is the only writer, a write neither reads nor decodes the
file.
"""

# ruff: noqa: PTH113, PTH116, PTH118 - one way to write a path in this package

from __future__ import annotations

import os
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import InvalidArgument, NotFound, StorageError
from bridgehead.runtime.timing import Clock

from . import day_document, journal, layout
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
from .records import read_day, read_journal_tail, recorded_attempts
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
    size: int
    insert_at: int
    identity: Identity | None
    document: DayDocument | None
    """The bytes; None if the file is so large that it grows by its journal."""
    journal: Identity | None = None


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
    """The file of one day, and its journal."""

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

    @property
    def has_journal(self) -> bool:
        """Whether records wait to be folded into the file."""
        return os.path.isfile(self._journal_path)

    def append(self, entries: list[NewEntry]) -> list[Recorded]:
        """Write records, oldest first: all of them, or none and an error."""
        # Only a record above claimed has a seal.
        entries = [
            self._seals.sign_entry(self._day, entry) if entry.grade in RANKED else entry for entry in entries
        ]
        try:
            with self._lock.held(self._path):
                cached = self._read_cached()
                new = self._leave_out_recorded(entries)
                if not new:
                    return [describe_run(cached.runs, entry) for entry in entries]
                # Dropped until the write succeeds: after a failure, memory and disk may differ.
                self._cached = None
                if cached.document is not None:
                    document = cached.document.with_new(new[::-1], self._key)
                    self._write(document.data)
                    # The document contains the journal's entries. If the journal is torn, none of its entries
                    # was acknowledged.
                    if self.has_journal:
                        self._drop_journal()
                    cached.size = len(document.head) + len(document.rest)
                    cached.document = document if cached.size < journal.JOURNAL_FROM_BYTES else None
                    cached.identity, cached.journal = identify(self._path), None
                else:
                    self._append_to_journal(cached, new)
        except OSError as failure:
            raise self._unwritable(failure) from failure
        self._cached = cached
        is_new = set(map(id, new))
        return [
            take_run(cached.runs, entry) if id(entry) in is_new else describe_run(cached.runs, entry)
            for entry in entries
        ]

    def _leave_out_recorded(self, entries: list[NewEntry]) -> list[NewEntry]:
        """Drop entries of attempts that already have a record: clients repeat calls whose answer was lost."""
        if not any(entry.attempt for entry in entries):
            return entries
        seen = recorded_attempts(read_day(self._lock.folder, self._day))
        new: list[NewEntry] = []
        for entry in entries:
            if entry.attempt is None:
                new.append(entry)
            elif entry.attempt not in seen:
                new.append(entry)
                seen.add(entry.attempt)
        return new

    def withdraw(self, wanted: Wanted) -> Entry:
        """Mark a record as withdrawn; it stays in the file and no longer counts.

        Raises `NotFound`, or `InvalidArgument` if several records have the timestamp.
        """
        try:
            with self._lock.held(self._path):
                self._cached = None
                # The record may still be in the journal, where it cannot be marked: fold first.
                self._fold()
                day = read_day(self._lock.folder, self._day)
                entries = [] if day is None else day.entries
                place = choose_record(self._day, wanted, entries)
                if day is not None:
                    # Insert the mark before the entry's closing brace; no other byte changes.
                    end = next(islice(day_document.spans_of_entries(day.data), place, None))[1] - 1
                    mark = b', "withdrawn": "%b"' % format_timestamp(self._clock.now()).encode()
                    self._write(day.data[:end] + mark + day.data[end:])
                return entries[place]
        except OSError as failure:
            raise self._unwritable(failure) from failure

    def fold(self, idle_seconds: float = 0.0) -> bool:
        """Fold the journal into the file unless it was written to within `idle_seconds`.

        Return whether it was folded.
        """
        # Checked before the lock is taken: a fold that is not due must not make writers wait.
        written = identify(self._journal_path)
        if written is None or self._clock.now() - written.modified / 1e9 < idle_seconds:
            return False
        try:
            with self._lock.held(self._path):
                self._cached = None
                self._fold()
        except OSError as failure:
            raise self._unwritable(failure) from failure
        return True

    def _read_cached(self) -> _CachedDay:
        """Return the day as it is on disk; read it again only if another process has written since."""
        cached = self._cached
        if cached is not None and cached.identity == identify(self._path):
            if cached.journal == identify(self._journal_path):
                return cached
            # Only the journal changed. If it has only grown, read just its new lines.
            tail = None
            if cached.document is None:
                tail = read_journal_tail(self._journal_path, cached.journal)
            if tail is not None:
                entries, cached.journal = tail
                for entry in entries:
                    take_run(cached.runs, journal.as_new(entry))
                return cached
        # Another writer was here and may have been killed. All writers hold the lock, so no temporary file is
        # in use now.
        durable.sweep(Path(self._lock.folder), self._clock.now(), age=-1)
        day = read_day(self._lock.folder, self._day)
        if day is None:
            empty = day_document.empty_document(self._day)
            return _CachedDay({}, 0, len(empty.head), None, empty)
        document = None
        if len(day.data) < journal.JOURNAL_FROM_BYTES:
            pending = [journal.as_new(entry) for entry in day.pending]
            document = day_document.split_document(day.data, day.insert_at)
            document = document.with_new(pending[::-1], self._key) if pending else document
        # Grades need no check here: the figures of a record are of all grades together.
        runs = day_document.group_entries(day.all_entries)
        return _CachedDay(runs, len(day.data), day.insert_at, day.identity, document, day.journal_identity)

    def _append_to_journal(self, cached: _CachedDay, entries: list[NewEntry]) -> None:
        data = b"".join(day_document.encode_entry(entry, self._key) + b"\n" for entry in entries)
        is_new = cached.journal is None
        self._check_room(cached.size + (0 if cached.journal is None else cached.journal.size) + len(data))
        if is_new:
            self._drop_journal()  # a kill tore its first line
            data = journal.begin_journal(self._day, durable.read(Path(self._path)), cached.insert_at) + data
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = durable.retry_while_locked(os.open, self._journal_path, flags, _READABLE)
        try:
            before = os.fstat(descriptor).st_size
            try:
                if is_new:
                    with suppress(OSError):
                        durable.give_rights(descriptor, None, self._share())
                elif _lacks_end(descriptor):
                    data = b"\n" + data  # a killed writer left half a line
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                durable.flush(descriptor)
            except BaseException:
                # Undo the failed write: it was not acknowledged, and must neither tear a line nor show up
                # later.
                with suppress(OSError):
                    os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)
        if is_new:
            durable.flush_folder(Path(self._lock.folder))  # a new name is on the disk only with its folder
        cached.journal = identify(self._journal_path)
        if cached.journal is not None and cached.journal.size > journal.MAX_JOURNAL_BYTES:
            self._fold()
            cached.identity, cached.journal = identify(self._path), None
            cached.size = 0 if cached.identity is None else cached.identity.size

    def _fold(self) -> None:
        """Write the journal's entries into the file, then remove it; a kill in between loses nothing."""
        day = read_day(self._lock.folder, self._day, is_decoded=False)
        if day is None or day.journal_identity is None:
            return
        if day.pending:
            pending = [journal.as_new(entry) for entry in day.pending]
            document = day_document.split_document(day.data, day.insert_at)
            self._write(document.with_new(pending[::-1], self._key).data)
        self._drop_journal()

    def _drop_journal(self) -> None:
        durable.remove(Path(self._journal_path))

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
    """Return the place of the record to withdraw; of equal ones the newest, which is first."""
    places = [
        place
        for place, entry in enumerate(entries)
        if not entry.is_withdrawn
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
    choices = {id_of(day, entries[place]): f"{entries[place].time} ms" for place in places}
    if len(choices) > 1:
        listed = ", ".join(f"{record} ({time})" for record, time in choices.items())
        raise InvalidArgument(
            f"Day {day} has {len(choices)} records {wanted}.", next_step=f"Name one by its id: {listed}."
        )
    return places[0]


def _lacks_end(descriptor: int) -> bool:
    """Return whether the last line of a file has no line feed."""
    if not os.lseek(descriptor, 0, os.SEEK_END):
        return False
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) != b"\n"
