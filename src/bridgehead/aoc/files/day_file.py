"""Day file: the records of one day on disk, written by this process and maybe by others. Blocks.

Every write holds the folder's lock, looks whether the file is still the one that the last write left, reads
it again where it is not, and replaces it as a whole: written beside, flushed, renamed. So a kill at any
moment leaves the old file or the new one. A file above a megabyte grows by its journal instead, and is
replaced when nobody records. What is in memory is used again while the disk still has it; then a write costs
no reading and no decoding.
"""

# ruff: noqa: PTH116, PTH118 - one way to write a path in this package

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import NotFound, StorageError
from bridgehead.runtime.timing import Clock

from ..ranking.figures import Figures, Runs, figures
from . import day_document, journal, layout
from .day_document import DayDocument
from .entries import CLAIMED, Entry, Group, NewEntry, RecordKey, format_timestamp
from .locking import FolderLock
from .names import canonical_name
from .records import read_day, read_journal_tail
from .snapshot import Identity, identify

_READABLE = 0o666
"""What the user's umask leaves of this is who may read a new file."""
_GROUP = 0o060
_GROUP_WRITES = 0o020


class Recorded(NamedTuple):
    """A record that is on the disk, and what the runs come to with it."""

    entry: NewEntry
    figures: Figures
    """Of the same LLM, day, phase and measure."""
    average: int
    """Of the same LLM and day, both phases, without its fraction."""


class _Page(Struct):
    """A day's file as it was last seen, and what its runs come to."""

    runs: dict[Group, Runs]
    size: int
    inside: int
    identity: Identity | None
    document: DayDocument | None
    """The bytes, only where the file is small enough to be replaced at each write."""
    journal: Identity | None = None

    def take(self, entry: NewEntry) -> Recorded:
        """Count a record that has been written."""
        return take_run(self.runs, entry)


def take_run(groups: dict[Group, Runs], entry: NewEntry) -> Recorded:
    """Count a record that has been stored among the runs of its day."""
    group = entry.group
    runs = groups.get(group)
    if runs is None:
        runs = groups[group] = Runs([])
    runs.add(entry.time, is_claimed=entry.source in {None, CLAIMED})
    return _describe(groups, entry, group, runs)


def describe_run(groups: dict[Group, Runs], entry: NewEntry) -> Recorded:
    """Tell what the runs of a day come to, with a record that counts among them."""
    group = entry.group
    runs = groups.get(group) or Runs([entry.time])  # taken back meanwhile, it counts for itself
    return _describe(groups, entry, group, runs)


def _describe(groups: dict[Group, Runs], entry: NewEntry, group: Group, runs: Runs) -> Recorded:
    # For every record: nothing is made that is not told.
    total, n = runs.total, len(runs.ordered)
    other = groups.get(Group(group.llm, 3 - group.phase, group.measure))
    if other is not None:
        total, n = total + other.total, n + len(other.ordered)
    return Recorded(entry, figures((runs,)), total // n)


class DayFile:
    """The file of one day, and its journal."""

    def __init__(self, lock: FolderLock, day: int, clock: Clock, key: RecordKey = "speedMs") -> None:
        self._lock = lock
        self._day = day
        self._clock = clock
        self._key: RecordKey = key
        self._path = os.path.join(lock.folder, layout.speeds_name(day))
        self._journal_path = os.path.join(lock.folder, layout.journal_name(day))
        self._page: _Page | None = None
        self._is_swept = False

    @property
    def has_journal(self) -> bool:
        """Whether records wait to be folded into the file."""
        return identify(self._journal_path) is not None

    # --- the three things that are done to a file ----------------------------------------------------------

    def append(self, entries: list[NewEntry]) -> list[Recorded]:
        """Write records, given from the oldest to the newest: all of them, or none and an error."""
        try:
            with self._lock.held(self._path):
                self._sweep()
                page = self._current()
                self._page = None  # until it is known that what is in memory is what is on the disk
                if page.document is not None:
                    self._replace(page, page.document.with_new(entries[::-1], self._key))
                else:
                    self._append_to_journal(page, entries)
        except OSError as failure:
            raise self._unwritable(failure) from failure
        self._page = page
        return [page.take(entry) for entry in entries]

    def withdraw(self, group: Group, timestamp: str) -> Entry:
        """Mark a record as taken back; it stays in the file and counts no more. Raises `NotFound`."""
        try:
            with self._lock.held(self._path):
                self._page = None
                self._fold()
                found = read_day(self._lock.folder, self._day)
                if found is not None:
                    for place, entry in enumerate(found.entries):
                        if _is_meant(entry, group, timestamp):
                            self._write(_marked(found.data, place, format_timestamp(self._clock.now())))
                            return entry
        except OSError as failure:
            raise self._unwritable(failure) from failure
        raise NotFound(
            f"Day {self._day} has no record of {group.llm} in phase {group.phase} at {timestamp}.",
            next_step="speed_history lists records with their timestamps.",
        )

    def fold(self, idle_seconds: float = 0.0) -> bool:
        """Put the journal into the file, unless somebody wrote to it within these seconds.

        Tell whether it was.
        """
        written = identify(self._journal_path)
        if written is None or self._clock.now() - written.modified / 1e9 < idle_seconds:
            return False
        try:
            with self._lock.held(self._path):
                self._page = None
                self._fold()
        except OSError as failure:
            raise self._unwritable(failure) from failure
        return True

    # --- reading -------------------------------------------------------------------------------------------

    def _current(self) -> _Page:
        """Return the page as the disk has it, read again only where somebody else wrote."""
        page = self._page
        if page is not None and page.identity == identify(self._path):
            if page.journal == identify(self._journal_path):
                return page
            if self._read_on(page):
                return page
        return self._read()

    def _read_on(self, page: _Page) -> bool:
        """Read what others have appended to the journal since.

        Tell whether that is all that happened to it.
        """
        tail = None if page.document is not None else read_journal_tail(self._journal_path, page.journal)
        if tail is None:
            return False
        entries, page.journal = tail
        for entry in entries:
            page.take(journal.as_new(entry))
        return True

    def _read(self) -> _Page:
        found = read_day(self._lock.folder, self._day)
        if found is None:
            empty = day_document.empty_document(self._day)
            return _Page({}, 0, len(empty.head), None, empty)
        document = None
        if len(found.data) < journal.JOURNAL_FROM_BYTES:
            waiting = [journal.as_new(entry) for entry in found.pending]
            document = day_document.split_document(found.data, found.inside)
            document = document.with_new(waiting[::-1], self._key) if waiting else document
        runs = day_document.group_entries(found.all_entries)
        return _Page(runs, len(found.data), found.inside, found.identity, document, found.journal_identity)

    # --- writing -------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Remove, the first time, what killed writers left."""
        if not self._is_swept:
            durable.sweep(Path(self._lock.folder), self._clock.now())
            self._is_swept = True

    def _replace(self, page: _Page, document: DayDocument) -> None:
        self._write(document.data)
        if self.has_journal:  # what was in it is in the document; a torn one has nothing that was answered
            self._drop_journal()
        page.size = len(document.head) + len(document.rest)
        page.document = document if page.size < journal.JOURNAL_FROM_BYTES else None
        page.inside = len(document.head)
        page.journal = None
        page.identity = identify(self._path)

    def _append_to_journal(self, page: _Page, entries: list[NewEntry]) -> None:
        lines = [day_document.encode_entry(entry, self._key) for entry in entries]
        data = b"".join(line + b"\n" for line in lines)
        size = page.journal.size if page.journal is not None else 0
        self._check_room(page.size + size + len(data))
        if page.journal is None:
            self._drop_journal()  # one of which not even the first line was written whole
            data = journal.begin_journal(self._day, durable.read(Path(self._path)), page.inside) + data
        self._append_durably(data, is_new=page.journal is None)
        page.journal = identify(self._journal_path)
        if page.journal is not None and page.journal.size > journal.MAX_JOURNAL_BYTES:
            self._fold()
            page.identity, page.journal = identify(self._path), None
            page.size = 0 if page.identity is None else page.identity.size

    def _append_durably(self, data: bytes, *, is_new: bool) -> None:
        """Append to the journal and flush; what fails half-way is taken back, so that no line is torn."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = durable.retry_while_locked(lambda: os.open(self._journal_path, flags, _READABLE))
        try:
            before = os.fstat(descriptor).st_size
            try:
                self._fill_journal(descriptor, data, is_new=is_new)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)
        if is_new:
            durable.flush_folder(Path(self._lock.folder))  # a new name is on the disk only with its folder

    def _fill_journal(self, descriptor: int, data: bytes, *, is_new: bool) -> None:
        if is_new:
            with suppress(OSError):
                durable.give_rights(descriptor, None, self._share())
        elif _lacks_end(descriptor):
            data = b"\n" + data  # behind the half line of a writer that was killed
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        durable.flush(descriptor)

    def _fold(self) -> None:
        """Write the journal's entries into the file, then remove the journal.

        In this order a kill loses nothing.
        """
        found = read_day(self._lock.folder, self._day, is_decoded=False)
        if found is None or found.journal_identity is None:
            return
        if found.pending:
            waiting = [journal.as_new(entry) for entry in found.pending]
            document = day_document.split_document(found.data, found.inside)
            self._write(document.with_new(waiting[::-1], self._key).data)
        self._drop_journal()

    def _drop_journal(self) -> None:
        durable.retry_while_locked(lambda: Path(self._journal_path).unlink(missing_ok=True))

    def _write(self, data: bytes) -> None:
        self._check_room(len(data))
        path = Path(os.path.realpath(self._path))  # a link stays a link
        try:
            like = path.stat()
        except FileNotFoundError:
            like = None
        durable.replace(path, data, mode=_READABLE, like=like, share=self._share())

    def _share(self) -> int:
        """Return what the group of a folder that it may write to gets of a new file, whatever the umask."""
        return _GROUP if os.stat(self._lock.folder).st_mode & _GROUP_WRITES else 0

    def _check_room(self, size: int) -> None:
        if size > day_document.MAX_BYTES:
            raise StorageError(
                f"{self._path} is full: the limit is {day_document.MAX_BYTES:,} bytes. Nothing was recorded.",
                next_step="Move it away to begin a new one.",
            )

    def _unwritable(self, failure: OSError) -> StorageError:
        """Name the day's file, and what it was that could not be opened where that is something else."""
        culprit = str(failure.filename or "")
        if Path(culprit).name.startswith("."):  # a temporary file: it is the folder that refuses it
            culprit = self._lock.folder
        where = f" ({culprit})" if culprit and culprit != self._path else ""
        return StorageError(
            f"{self._path} cannot be written: {failure.strerror or failure}{where}. Nothing was recorded.",
            next_step="Make room or give this user the right to write there, then record again.",
        )


def _is_meant(entry: Entry, group: Group, timestamp: str) -> bool:
    is_same = entry.phase == group.phase and entry.timestamp == timestamp
    return is_same and not entry.is_withdrawn and canonical_name(entry.llm) == group.llm


def _marked(data: bytes, place: int, timestamp: str) -> bytes:
    """Put the mark of a withdrawn record into an entry, before its closing brace."""
    end = next(islice(day_document.spans_of_entries(data), place, None))[1] - 1
    return data[:end] + b', "withdrawn": "%b"' % timestamp.encode() + data[end:]


def _lacks_end(descriptor: int) -> bool:
    """Tell whether the last line of a file has no end."""
    if not os.lseek(descriptor, 0, os.SEEK_END):
        return False
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) != b"\n"
