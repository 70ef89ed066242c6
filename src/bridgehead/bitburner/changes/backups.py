"""Backups: what a file held before it was overwritten or deleted, kept on this machine.

Each kept content is one file that is written once and never changed, so that several processes can keep
contents side by side without a lock. Bounded by count and by bytes: the oldest go first, but the last one of
a file goes only when nothing else is left to go. Blocks: call from a thread.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from bridgehead.runtime import directories, durable
from bridgehead.runtime.errors import NotFound, StorageError

from ..errors import BackupFailed
from ..game import timestamps
from ..settings import OFF

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bridgehead.runtime.timing import Clock

    from ..settings import BitburnerSettings

_SUFFIX = ".json"
_KEY_LETTERS = 16


class Kept(Struct, frozen=True):
    """A previous content of a file."""

    server: str
    filename: str
    at: float
    because: str
    content: str


class Version(Struct, frozen=True):
    """A previous content as it is listed: newest first, without the content."""

    version: str
    server: str
    filename: str
    kept_at: str
    because: str
    bytes: int


class _Entry(Struct, frozen=True):
    """A kept content as the folder shows it: names sort by time."""

    name: str
    size: int

    @property
    def key(self) -> str:
        return self.name.removesuffix(_SUFFIX).rpartition("-")[2]


class Backups:
    """The folder of previous contents."""

    def __init__(self, settings: BitburnerSettings, clock: Clock) -> None:
        self.is_on = settings.backup_dir != OFF
        self._settings = settings
        self._most_files = settings.backup_max_files
        self._most_bytes = settings.backup_max_bytes
        self._clock = clock
        self._count = itertools.count()

    @property
    def folder(self) -> Path:
        """Where contents are kept, made if need be."""
        chosen = self._settings.backup_dir
        if chosen is None or isinstance(chosen, str):
            return directories.open_state(self._settings, "bitburner/backups")
        return directories.make_private(chosen)

    def store(self, server: str, filename: str, content: str, because: str) -> str:
        """Keep a content and return its version; raises `BackupFailed` where that is not possible."""
        kept = Kept(server, filename, self._clock.now(), because, content)
        data = msgspec.json.encode(kept)
        version = self._version(kept)
        try:
            self._check_size(len(data))
            folder = self.folder
            durable.replace(folder / f"{version}{_SUFFIX}", data)
            self._prune(folder, version)
        except (OSError, StorageError) as failure:
            raise BackupFailed(
                f"The previous content of {filename} could not be kept ({failure}), so it was left as it is.",
                next_step="Make room or set BITBURNER_BACKUP_DIR to a folder that can be written to "
                "(off: keep nothing).",
            ) from failure
        return version

    def _check_size(self, size: int) -> None:
        if size > self._most_bytes:
            raise OSError(f"it takes {size} bytes, and BITBURNER_BACKUP_MAX_BYTES is {self._most_bytes}")

    def _version(self, kept: Kept) -> str:
        """Name a content: by time, then by process and count, then by file."""
        unique = f"{os.getpid():x}{next(self._count):x}"
        return f"{int(kept.at * 1000):013d}-{unique}-{_key(kept.server, kept.filename)}"

    def list_versions(self, server: str, filename: str | None) -> list[Version]:
        """List what is kept of a file, or of all files of a server, newest first."""
        key = None if filename is None else _key(server, filename)
        found = (self._listed(entry) for entry in reversed(_entries(self.folder)) if key in (None, entry.key))
        return [version for version in found if version is not None and version.server == server]

    def load(self, server: str, filename: str, version: str | None) -> tuple[str, str]:
        """Return a version of a file and its content: the newest one, or the one that is named."""
        key = _key(server, filename)
        entries = [entry for entry in _entries(self.folder) if entry.key == key]
        names = [entry.name.removesuffix(_SUFFIX) for entry in entries]
        chosen = version or (names[-1] if names else None)
        kept = self._read(f"{chosen}{_SUFFIX}") if chosen in names else None
        if chosen is None or kept is None:
            what = f"version {version} of {filename}" if version else f"earlier version of {filename}"
            raise NotFound(
                f"No {what} on {server} is kept.",
                next_step="Call restore_file with list_only to see what is kept.",
            )
        return chosen, kept.content

    def _listed(self, entry: _Entry) -> Version | None:
        kept = self._read(entry.name)
        if kept is None:
            return None
        size = len(kept.content.encode())
        name = entry.name.removesuffix(_SUFFIX)
        return Version(name, kept.server, kept.filename, timestamps.format_utc(kept.at), kept.because, size)

    def _read(self, name: str) -> Kept | None:
        try:
            return msgspec.json.decode((self.folder / name).read_bytes(), type=Kept)
        except (OSError, msgspec.DecodeError):
            return None  # pruned by another process meanwhile, or not ours

    def _prune(self, folder: Path, newest: str) -> None:
        durable.sweep(folder, self._clock.now())
        entries = [entry for entry in _entries(folder) if entry.name != f"{newest}{_SUFFIX}"]
        newest_size = (folder / f"{newest}{_SUFFIX}").stat().st_size
        for entry in _surplus(entries, self._most_files - 1, self._most_bytes - newest_size):
            (folder / entry.name).unlink(missing_ok=True)


def _surplus(entries: list[_Entry], most_files: int, most_bytes: int) -> Iterable[_Entry]:
    """Choose what has to go: the oldest, and a file's last version only after all that have a newer one."""
    left, size = len(entries), sum(entry.size for entry in entries)
    last = {entry.key: entry.name for entry in entries}
    for entry in sorted(entries, key=lambda one: (last[one.key] == one.name, one.name)):
        if left <= most_files and size <= most_bytes:
            return
        left, size = left - 1, size - entry.size
        yield entry


def _entries(folder: Path) -> list[_Entry]:
    """List what is kept, oldest first."""
    with os.scandir(folder) as found:
        names = [one for one in found if one.name.endswith(_SUFFIX) and not one.name.startswith(".")]
        return sorted((_Entry(one.name, one.stat().st_size) for one in names), key=lambda e: e.name)


def _key(server: str, filename: str) -> str:
    return hashlib.sha256(f"{server}\0{filename}".encode()).hexdigest()[:_KEY_LETTERS]
