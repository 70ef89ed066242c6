"""Day file: the records of one day on disk, written by this process and maybe by others. May block.

Every write takes the lock, looks whether the file is still the one that the last write left, reads it again
where it is not, and replaces it as a whole: written beside, flushed, renamed. So a kill at any moment leaves
the old file or the new one. The lock is a file of its own, since the day's is another one after each write.
What is in memory is used again while the file on disk is still that one; then a write costs no reading and no
decoding.
"""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import StorageError, Unavailable
from bridgehead.runtime.timing import Clock

from ..ranking.figures import Figures, Runs, figures
from . import day_document, layout
from .day_document import MAX_BYTES, CorruptDay, DayDocument, Times, corrupt_file
from .entries import NewEntry
from .snapshot import Identity, identify, read_snapshot

_POLL_SECONDS = 0.002
_READABLE = 0o666
"""What the user's umask leaves of this is who may read a new file."""


class Recorded(NamedTuple):
    """A record that is on the disk, and what the runs come to with it."""

    entry: NewEntry
    figures: Figures
    """Of the same LLM, day and phase."""
    average: int
    """Of the same LLM and day, both phases, without its fraction."""


class _Page(Struct):
    """A day's file as it was last seen, and what its runs come to."""

    sheet: DayDocument
    times: Times
    runs: dict[tuple[str, int], Runs]
    identity: Identity | None

    def of(self, llm: str, phase: int) -> Runs:
        """Give the runs of an LLM, made ready for more when they are first asked for."""
        key = llm, phase
        if key not in self.runs:
            self.runs[key] = Runs(self.times[phase].pop(llm, []))
        return self.runs[key]

    def take(self, entry: NewEntry) -> Recorded:
        """Count a record that has been written."""
        runs = self.of(entry.llm, entry.phase)
        runs.add(entry.time)
        other = self.of(entry.llm, 3 - entry.phase)
        average = (runs.total + other.total) // (len(runs.ordered) + len(other.ordered))
        return Recorded(entry, figures([runs]), average)


class DayFile:
    """The file of one day, written to by this process and maybe by others. Everything here may block."""

    def __init__(self, folder: str, day: int, lock_wait: float, clock: Clock) -> None:
        self._folder = folder
        self._day = day
        self._lock_wait = lock_wait
        self._clock = clock
        self._path = os.path.join(folder, layout.speeds_name(day))
        self._page: _Page | None = None
        self._is_swept = False

    def append(self, entries: list[NewEntry]) -> list[Recorded]:
        """Write records, given from the oldest to the newest: all of them, or none and an error."""
        try:
            with self._locked():
                page = self._current()
                self._page = None  # until it is known that what is in memory is what is on the disk
                page.sheet = page.sheet.with_new(entries[::-1])
                self._replace(page.sheet.data)
                page.identity = identify(self._path)
        except OSError as failure:
            raise StorageError(
                f"{self._path} cannot be written: {failure.strerror or failure}. Nothing was recorded.",
                next_step="Make room or give this user the right to write there, then record again.",
            ) from failure
        self._page = page
        return [page.take(entry) for entry in entries]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock, Timeout

        self._prepare()
        lock = os.path.join(self._folder, f".day{layout.two_digits(self._day)}.lock")
        held = FileLock(lock, timeout=self._lock_wait, poll_interval=_POLL_SECONDS)
        try:
            held.acquire()
        except Timeout as failure:
            raise Unavailable(
                f"Another process has held {lock} for {self._lock_wait:g} s. Nothing was recorded.",
                next_step="Record again in a moment; AOC_LOCK_WAIT_MS says how long to wait.",
            ) from failure
        try:
            yield
        finally:
            held.release()

    def _prepare(self) -> None:
        """Make the folder where there is none; the first time, remove what killed writers left in it."""
        durable.make_folder(Path(self._folder))
        if not self._is_swept:
            durable.sweep(Path(self._folder), self._clock.now())
            self._is_swept = True

    def _current(self) -> _Page:
        """Give the page as the disk has it, read again only where somebody else wrote."""
        page = self._page
        if page is not None and page.identity == identify(self._path):
            return page
        stored = read_snapshot(self._path, MAX_BYTES)
        if stored is None:
            return _Page(day_document.empty_document(self._day), day_document.group_times([]), {}, None)
        try:
            times = day_document.decode_times(stored.data, self._day)
            return _Page(day_document.split_document(stored.data), times, {}, stored.identity)
        except CorruptDay as problem:
            raise corrupt_file(self._path, problem) from problem

    def _replace(self, data: bytes) -> None:
        if len(data) > MAX_BYTES:
            raise StorageError(
                f"{self._path} is full: {MAX_BYTES:,} bytes are the most. Nothing was recorded.",
                next_step="Move it away to begin a new one.",
            )
        path = Path(os.path.realpath(self._path))  # a link stays a link
        try:
            mode = path.stat().st_mode & 0o777
        except FileNotFoundError:
            mode = _READABLE
        durable.replace(path, data, mode=mode)
