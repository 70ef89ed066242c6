"""History: every content of a file that this bridge found, wrote or deleted, kept on this machine.

Each version is one file that is written once and never changed, so that processes can add versions side by
side without a lock. What was written is kept as well as what it replaced: a game that loads an older save
loses nothing for good. Bounded by count and by bytes: the oldest go first, but the last version of a file
goes only when nothing else is left to go. Blocks: call from a thread.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

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

Kind = Literal["found", "written", "deleted"]


class Version(Struct, frozen=True, omit_defaults=True):
    """What a file held at one time. A file of version 0.1 has no `kind`: it was found, and then replaced."""

    server: str
    filename: str
    at: float
    because: str
    content: str | None = None
    """None where the file was deleted."""
    kind: Kind = "found"
    restored: str = ""
    """The version that this one brought back; an undo goes on from there."""
    name: str = ""

    @property
    def bytes(self) -> int:
        """Its size in UTF-8."""
        return len((self.content or "").encode())

    @property
    def kept_at(self) -> str:
        """When it was kept, in UTC."""
        return timestamps.format_utc(self.at)


class _Entry(Struct, frozen=True):
    """A version as the folder shows it: names sort by time."""

    name: str
    size: int

    @property
    def key(self) -> str:
        return self.name.removesuffix(_SUFFIX).rpartition("-")[2]


class History:
    """The folder of versions."""

    def __init__(self, settings: BitburnerSettings, clock: Clock) -> None:
        self.is_on = settings.backup_dir != OFF
        self._settings = settings
        self._most_files = settings.backup_max_files
        self._most_bytes = settings.backup_max_bytes
        self._clock = clock
        self._count = itertools.count()

    @property
    def folder(self) -> Path:
        """Where versions are kept, made if need be."""
        chosen = self._settings.backup_dir
        if chosen is None or isinstance(chosen, str):
            return directories.open_state(self._settings, "bitburner/backups")
        return directories.make_private(chosen)

    def record(self, version: Version) -> str:
        """Keep a version and return its name; raises `BackupFailed` where that is not possible."""
        try:
            folder = self.folder
            entries = _list_entries(folder)
            name = self._make_name(version, entries)
            data = msgspec.json.encode(version)
            self._check_size(len(data))
            durable.replace(folder / f"{name}{_SUFFIX}", data)
            self._prune(folder, entries, len(data))
        except (OSError, StorageError) as failure:
            raise BackupFailed(
                f"The previous content of {version.filename} could not be kept ({failure}), "
                "so it was left as it is.",
                next_step="Make room or set BITBURNER_BACKUP_DIR to a folder that can be written to "
                "(off: keep nothing).",
            ) from failure
        return name

    def discard(self, name: str) -> None:
        """Forget a version that the game turned out to have refused."""
        durable.remove(self.folder / f"{name}{_SUFFIX}")

    def _check_size(self, size: int) -> None:
        if size > self._most_bytes:
            raise OSError(f"it takes {size} bytes, and BITBURNER_BACKUP_MAX_BYTES is {self._most_bytes}")

    def _make_name(self, version: Version, entries: list[_Entry]) -> str:
        """Name a version by time, count, process and file.

        Never before the newest version of the same file: a clock that is set back must not reorder it.
        """
        key = _make_key(version.server, version.filename)
        newest = max((entry.name for entry in entries if entry.key == key), default="0")
        moment = max(int(version.at * 1000), int(newest.partition("-")[0]))
        unique = f"{next(self._count):08x}{os.getpid():x}"
        if newest > f"{moment:013d}-{unique}":
            moment += 1
        return f"{moment:013d}-{unique}-{key}"

    def list_versions(self, server: str, filename: str | None) -> list[Version]:
        """List the versions of a file, or of all files of a server, newest first."""
        key = None if filename is None else _make_key(server, filename)
        entries = reversed(_list_entries(self.folder))
        found = (self._read(entry) for entry in entries if key in (None, entry.key))
        return [version for version in found if version is not None and version.server == server]

    def find_newest(self, server: str, filename: str) -> Version | None:
        """Return the newest version of a file."""
        key = _make_key(server, filename)
        matching = (entry for entry in reversed(_list_entries(self.folder)) if entry.key == key)
        return next((found for entry in matching if (found := self._read(entry)) is not None), None)

    def list_last_writes(self) -> list[Version]:
        """Return the newest version of each file, where this bridge wrote or deleted it; newest first."""
        newest: dict[str, _Entry] = {}
        for entry in reversed(_list_entries(self.folder)):
            newest.setdefault(entry.key, entry)
        found = (self._read(entry) for entry in newest.values())
        return [version for version in found if version is not None and version.kind != "found"]

    def load(self, server: str, filename: str, name: str) -> Version:
        """Return the version that is named; it must have a content."""
        for version in self.list_versions(server, filename):
            if version.name == name and version.content is not None:
                return version
        raise NotFound(
            f"No version {name} of {filename} on {server} is kept.",
            next_step="Call restore_file with list_only to see what is kept.",
        )

    def find_undo(self, server: str, filename: str, current: str | None) -> Version:
        """Return the version before the current content.

        A restore does not count as a step forward: undoing twice goes back twice.
        """
        versions = self.list_versions(server, filename)
        names = [version.name for version in versions]
        at = 0
        if versions and versions[0].content == current and versions[0].restored in names:
            at = names.index(versions[0].restored)
        for version in versions[at:]:
            if version.content is not None and version.content != current:
                return version
        raise NotFound(
            f"No earlier version of {filename} on {server} is kept.",
            next_step="Call restore_file with list_only to see what is kept, and name a version.",
        )

    def _read(self, entry: _Entry) -> Version | None:
        try:
            version = msgspec.json.decode(durable.read(self.folder / entry.name), type=Version)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None  # pruned by another process meanwhile, or not ours
        return msgspec.structs.replace(version, name=entry.name.removesuffix(_SUFFIX))

    def _prune(self, folder: Path, before: list[_Entry], added: int) -> None:
        durable.sweep(folder, self._clock.now())
        for entry in _choose_surplus(before, self._most_files - 1, self._most_bytes - added):
            with suppress(PermissionError):  # on Windows, somebody reads it; the next one prunes it
                (folder / entry.name).unlink(missing_ok=True)


def _choose_surplus(entries: list[_Entry], most_files: int, most_bytes: int) -> Iterable[_Entry]:
    """Choose what has to go: the oldest, and a file's last version only after all that have a newer one."""
    left, size = len(entries), sum(entry.size for entry in entries)
    if left <= most_files and size <= most_bytes:
        return
    last = {entry.key: entry.name for entry in entries}
    for entry in sorted(entries, key=lambda one: (last[one.key] == one.name, one.name)):
        if left <= most_files and size <= most_bytes:
            return
        left, size = left - 1, size - entry.size
        yield entry


def _list_entries(folder: Path) -> list[_Entry]:
    """List what is kept, oldest first."""
    with os.scandir(folder) as found:
        kept = (one for one in found if one.name.endswith(_SUFFIX) and not one.name.startswith("."))
        entries = [entry for one in kept if (entry := _make_entry(one)) is not None]
    return sorted(entries, key=lambda entry: entry.name)


def _make_entry(found: os.DirEntry[str]) -> _Entry | None:
    try:
        return _Entry(found.name, found.stat().st_size)
    except FileNotFoundError:
        return None  # pruned by another process meanwhile


def _make_key(server: str, filename: str) -> str:
    return hashlib.sha256(f"{server}\0{filename}".encode()).hexdigest()[:_KEY_LETTERS]
