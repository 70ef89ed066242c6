"""History: every content of a file that this bridge found, wrote or deleted, kept on this machine.

Each version is one file that is written once and never changed; `VersionIndex` knows them all. Both the
written content and the one it replaced are kept: if a game loads an older save, nothing is lost for good.
Each of the two has limits of its own, so that neither pushes the other out. Blocks: call from a thread.

A recorded version is in its file, so it survives the end of this process. It survives a power cut only once
it is flushed, which takes longer than the rest of a write: `record` may leave that to `flush`.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from bridgehead.runtime import directories, durable
from bridgehead.runtime.errors import NotFound, StorageError
from bridgehead.runtime.timing import Clock

from ..errors import BackupFailed
from ..settings import OFF, BitburnerSettings
from .version_index import SUFFIX, Entry, Kind, VersionIndex, make_key

MAX_BYTES = 200_000_000
"""Separate limits of the same size for replaced contents and for last writes. The limit by count is
normally reached first; this one keeps huge files from filling the disk."""


_UNFLUSHED_SECONDS = 60.0
"""After a crash, older versions need no flush: systems write back within half a minute."""


class Version(Struct, frozen=True, omit_defaults=True):
    """The content of a file at one time; content None: the file was deleted."""

    server: str
    filename: str
    at: float
    because: str
    content: str | None = None
    kind: Kind = "found"
    restored: str = ""
    """The version that this one restored; the next undo continues from there."""
    name: str = ""


def place(settings: BitburnerSettings) -> Path:
    """Return the path of the folder of versions, which may not exist."""
    chosen = settings.backup_dir
    if chosen is None or isinstance(chosen, str):
        return directories.state_folder(settings, "bitburner/backups")
    return chosen


class History:
    """The folder of versions, bounded by count and by bytes."""

    def __init__(self, settings: BitburnerSettings, clock: Clock) -> None:
        self.is_on = settings.backup_dir != OFF
        self.game = ""
        """The game that is connected, or was: see `GameConnection.past`. Each has versions of its own."""
        self._settings = settings
        self.max_files = settings.backup_max_files
        self.max_bytes = MAX_BYTES
        self.has_excess = False
        """Whether `drop_oldest` has something to do."""
        self.unflushed: dict[str, None] = {}
        """Versions not flushed yet, which a power cut may destroy, oldest first; `flush` empties it."""
        # Digest and name of each file's newest version, if this process recorded it.
        self._newest: dict[tuple[str, str], tuple[str, str]] = {}
        self._clock = clock
        self._count = itertools.count()
        self._folder: Path | None = None
        self._index: VersionIndex | None = None
        # Held while the index is opened, by the first of several threads.
        self._opening = threading.Lock()
        self._is_closed = False

    @property
    def folder(self) -> Path:
        """The folder of versions; created if it is missing, even if someone deleted it meanwhile."""
        if self._folder is None or not self._folder.is_dir():
            self._folder = directories.make_private(place(self._settings))
        return self._folder

    @property
    def index(self) -> VersionIndex:
        """The index; opened on first use, and again if someone deleted its file."""
        with self._opening:
            # The thread of a cancelled call may still be running.
            if self._is_closed:
                raise StorageError("The bridge has ended.", next_step="Connect again.")
            if self._index is not None and not self._index.is_there:
                self._index.close()
                self._index = None
            if self._index is None:
                folder = self.folder
                durable.sweep(folder, self._clock.now())
                try:
                    self._index = VersionIndex(folder, self._read_entry)
                except sqlite3.Error as failure:
                    raise StorageError(
                        f"The index of versions in {folder} cannot be used: {failure}.",
                        next_step="Make room, or set BITBURNER_BACKUP_DIR to another folder.",
                        path=str(folder),
                    ) from failure
                # A process that was killed may not have flushed its last ones.
                recent = f"{int((self._clock.now() - _UNFLUSHED_SECONDS) * 1000):013d}"
                self.unflushed |= dict.fromkeys(self._index.list_since(recent))
            return self._index

    def close(self) -> None:
        """Flush the versions that are not flushed yet, and close the index."""
        with suppress(OSError):
            self.flush()
        with self._opening:
            self._is_closed = True
            if self._index is not None:
                self._index.close()
                self._index = None

    def _own(self, server: str) -> str:
        """Return a server as it is stored: with the game that it belongs to, unless that is a real one."""
        return f"{self.game}:{server}" if self.game else server

    def recall(self, version: Version) -> str | None:
        """Return the newest version of a file, if this process recorded it and its content is the same.

        Does not block, so it does not check that the file still exists: `record_next` does.
        """
        newest_digest, name = self._newest.get((self._own(version.server), version.filename), ("", ""))
        return name if version.content is not None and digest(version.content) == newest_digest else None

    def record_next(self, version: Version, previous: Version | None) -> str:
        """Keep a new content and return its version; `flush` flushes it.

        If the version of the content before it was deleted or damaged meanwhile, that is kept once more.
        """
        if previous is not None:
            kept = self._read(previous.name)
            if kept is None or kept.content != previous.content:
                self.record(previous)
        return self.record(version, flushes=False)

    def record(self, version: Version, *, unless_kept: bool = False, flushes: bool = True) -> str:
        """Keep a version and return its name; raise `BackupFailed` if it cannot be kept.

        With `unless_kept`, nothing is written if the file's newest readable version holds the same content.
        """
        try:
            index = self.index
            version = msgspec.structs.replace(version, server=self._own(version.server))
            if unless_kept:
                kept = self._find_newest(version.server, version.filename)
                if kept is not None and kept.content == version.content:
                    if kept.name in self.unflushed:
                        self.flush()
                    return kept.name
            key = make_key(version.server, version.filename)
            newest = index.newest(key) or "0"
            # Names sort by time. If the clock was set back, continue after the file's newest version.
            moment = max(int(version.at * 1000), int(newest.partition("-")[0]))
            # Counter and process: several versions may be recorded in one millisecond, also by two processes.
            unique = f"{next(self._count):08x}{os.getpid():x}"
            if newest > f"{moment:013d}-{unique}":
                moment += 1
            name = f"{moment:013d}-{unique}-{key}"
            data = msgspec.json.encode(version)
            if len(data) > self.max_bytes:
                raise OSError(  # noqa: TRY301 - one report for every reason not to keep it
                    f"it takes {len(data)} bytes, and all backups may take {self.max_bytes}"
                )
            # The file first: a version without an entry is found at the next start.
            durable.replace(self.folder / f"{name}{SUFFIX}", data, flushes=flushes)
            if not flushes:
                self.unflushed[name] = None
            entry = _make_entry(version, name, len(data))
            index.add(entry)
            self._newest[version.server, version.filename] = (entry.digest or "", name)
            if len(self._newest) > self.max_files:
                del self._newest[next(iter(self._newest))]
            self.has_excess = index.has_excess(self.max_files, self.max_bytes)
        except (OSError, StorageError, sqlite3.Error) as failure:
            raise BackupFailed(
                f"The previous content of {version.filename} could not be kept ({failure}), "
                "so it was left as it is.",
                next_step="Make room or set BITBURNER_BACKUP_DIR to a folder that can be written to "
                "(off: keep nothing).",
            ) from failure
        return name

    def flush(self) -> None:
        """Flush the versions that were recorded without it."""
        names = list(self.unflushed)
        if not names:
            return
        folder = self.folder
        for name in names:
            with suppress(FileNotFoundError):  # the version was dropped meanwhile
                durable.flush_file(folder / f"{name}{SUFFIX}")
        durable.flush_folder(folder)
        for name in names:
            self.unflushed.pop(name, None)

    def discard(self, name: str) -> None:
        """Remove a version whose write the game refused."""
        self._newest = {place: newest for place, newest in self._newest.items() if newest[1] != name}
        with suppress(sqlite3.Error, StorageError):  # the file decides; the next start drops the entry
            self.index.undo_add(name)
        durable.remove(self.folder / f"{name}{SUFFIX}")

    def drop_oldest(self) -> list[Entry]:
        """Delete the oldest versions beyond the limits, and return them."""
        with suppress(sqlite3.Error, StorageError):  # still too many; the next write retries
            self.has_excess = False
            dropped = self.index.list_excess(self.max_files, self.max_bytes)
            if dropped:
                self.index.drop([entry.name for entry in dropped])
            for entry in dropped:
                self._newest.pop((entry.server, entry.filename), None)
                # Windows refuses while another process reads the file; the next start finds and drops it.
                with suppress(OSError):
                    (self.folder / f"{entry.name}{SUFFIX}").unlink()
            return dropped
        return []

    def list_entries(self, server: str, filename: str | None) -> list[Entry]:
        """List the versions of a file, or of all files of a server, newest first."""
        return self.index.list_entries(self._own(server), filename)

    def find_newest(self, server: str, filename: str) -> Version | None:
        """Return the newest readable version of a file."""
        return self._find_newest(self._own(server), filename)

    def _find_newest(self, server: str, filename: str) -> Version | None:
        # The newest alone first: every write asks, and a file may have thousands of versions.
        for limit in (1, -1):
            for entry in self.index.list_entries(server, filename, limit):
                version = self._read(entry.name)
                if version is not None:
                    return version
        return None

    def holds(self, server: str, filename: str, content: str) -> bool:
        """Return whether some version of a file holds this content."""
        wanted = digest(content)
        return any(
            entry.digest == wanted and self._read(entry.name) is not None
            for entry in self.list_entries(server, filename)
        )

    def list_last_writes(self) -> list[Entry]:
        """Return the newest version of each file that this bridge wrote or deleted last; newest first.

        They are of all games; the servers of one that is not real are named `game:server`.
        """
        return self.index.list_last_writes()

    def find_last_write(self, server: str, filename: str) -> Version | None:
        """Return the content that this bridge wrote last to a file; None if it wrote none, or deleted it."""
        entry = self.index.find_last_write(self._own(server), filename)
        version = None if entry is None else self._read(entry.name)
        return None if version is None or version.content is None else version

    def load(self, server: str, filename: str, name: str) -> Version:
        """Return a version by its name; a deletion has no content and is not found."""
        for entry in self.list_entries(server, filename):
            if entry.name == name:
                version = self._read(name)
                if version is not None and version.content is not None:
                    return version
        raise NotFound(
            f"No version {name} of {filename} on {server} is kept.",
            next_step="Call restore_file with list_only to see what is kept.",
        )

    def find_undo(self, server: str, filename: str, current: str | None) -> Version:
        """Return the version before the current content; repeated undos go further back each time."""
        entries = self.list_entries(server, filename)
        names = [entry.name for entry in entries]
        now = None if current is None else digest(current)
        at = 0
        # If the newest version is itself a restore, continue from the version that it restored. Otherwise two
        # undos would swap the same two contents.
        if entries and entries[0].digest == now and entries[0].restored in names:
            at = names.index(entries[0].restored)
        for entry in entries[at:]:
            if entry.digest not in (None, now):
                version = self._read(entry.name)
                if version is not None:
                    return version
        raise NotFound(
            f"No earlier version of {filename} on {server} is kept.",
            next_step="Call restore_file with list_only to see what is kept, and name a version.",
        )

    def _read(self, name: str) -> Version | None:
        try:
            version = msgspec.json.decode(durable.read(self.folder / f"{name}{SUFFIX}"), type=Version)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None  # pruned by another process, or not a version
        return msgspec.structs.replace(version, name=name)

    def _read_entry(self, name: str) -> Entry | None:
        """Return the index entry for a version's file; None if it is not a version."""
        version = self._read(name)
        if version is None:
            return None
        try:
            size = (self.folder / f"{name}{SUFFIX}").stat().st_size
        except OSError:
            return None
        return _make_entry(version, name, size)


def _make_entry(version: Version, name: str, size: int) -> Entry:
    content = version.content
    return Entry(
        name,
        version.server,
        version.filename,
        version.at,
        version.because,
        version.kind,
        version.restored,
        None if content is None else digest(content),
        len((content or "").encode()),
        size,
    )


def digest(content: str) -> str:
    """Return the SHA-256 of a content, in hex."""
    return hashlib.sha256(content.encode()).hexdigest()
