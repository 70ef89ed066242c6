"""History: every content of a file that this bridge found, wrote or deleted, kept on this machine.

Each version is one file that is written once and never changed, so several processes can add versions without
a lock. Both the written content and the one it replaced are kept: if a game loads an older save, nothing is
lost for good. Blocks: call from a thread.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from bridgehead.runtime import directories, durable
from bridgehead.runtime.errors import NotFound, StorageError

from ..errors import BackupFailed
from ..game import timestamps
from ..settings import OFF

if TYPE_CHECKING:
    from pathlib import Path

    from bridgehead.runtime.timing import Clock

    from ..settings import BitburnerSettings

MAX_BYTES = 200_000_000
"""All versions together. The limit by count is reached first, unless files are huge: then this one keeps the
disk from filling up."""
_SUFFIX = ".json"
_KEY_LETTERS = 16

Kind = Literal["found", "written", "deleted"]


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

    @property
    def bytes(self) -> int:
        """Size of the content in UTF-8."""
        return len((self.content or "").encode())

    @property
    def kept_at(self) -> str:
        """The time at which it was kept, in UTC."""
        return timestamps.format_utc(self.at)


class _Entry(Struct, frozen=True):
    """A version's file in the folder; names sort by time."""

    name: str
    size: int

    @property
    def key(self) -> str:
        """A hash of the version's server and path."""
        return self.name.removesuffix(_SUFFIX).rpartition("-")[2]


class History:
    """The folder of versions, bounded by count and by bytes."""

    def __init__(self, settings: BitburnerSettings, clock: Clock) -> None:
        self.is_on = settings.backup_dir != OFF
        self._settings = settings
        self._max_files = settings.backup_max_files
        self.max_bytes = MAX_BYTES
        self._clock = clock
        self._count = itertools.count()
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of versions; created if it is missing, even if someone deleted it meanwhile."""
        if self._folder is None or not self._folder.is_dir():
            chosen = self._settings.backup_dir
            if chosen is None or isinstance(chosen, str):
                self._folder = directories.open_state(self._settings, "bitburner/backups")
            else:
                self._folder = directories.make_private(chosen)
        return self._folder

    def record(self, version: Version, *, unless_kept: bool = False) -> str:
        """Keep a version and return its name; raise `BackupFailed` if it cannot be kept.

        With `unless_kept`, nothing is written if the file's newest readable version holds the same content.
        """
        try:
            folder = self.folder
            entries = _list_entries(folder)
            key = _make_key(version.server, version.filename)
            ending = f"-{key}{_SUFFIX}"
            versions = [entry for entry in entries if entry.name.endswith(ending)]
            if unless_kept:
                for entry in reversed(versions):
                    known = self._read(folder, entry)
                    if known is not None and known.content == version.content:
                        return known.name
                    if known is not None:
                        break
            newest = versions[-1].name if versions else "0"
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
        """Remove a version whose write the game refused."""
        durable.remove(self.folder / f"{name}{_SUFFIX}")

    def _prune(self, folder: Path, entries: list[_Entry], added: int) -> None:
        """Delete the oldest versions above the limits, but a file's last version only after all others."""
        durable.sweep(folder, self._clock.now())
        count, size = len(entries) + 1, sum(map(attrgetter("size"), entries)) + added
        if count <= self._max_files and size <= self.max_bytes:
            return
        last = {entry.key: entry.name for entry in entries}
        for entry in sorted(entries, key=lambda entry: (last[entry.key] == entry.name, entry.name)):
            if count <= self._max_files and size <= self.max_bytes:
                return
            count, size = count - 1, size - entry.size
            # Windows refuses while another process reads the file; the next write prunes it.
            with suppress(PermissionError):
                (folder / entry.name).unlink(missing_ok=True)

    def list_versions(self, server: str, filename: str | None) -> list[Version]:
        """List the versions of a file, or of all files of a server, newest first."""
        key = None if filename is None else _make_key(server, filename)
        folder = self.folder
        entries = reversed(_list_entries(folder))
        found = (self._read(folder, entry) for entry in entries if key in (None, entry.key))
        return [version for version in found if version is not None and version.server == server]

    def find_newest(self, server: str, filename: str) -> Version | None:
        """Return the newest readable version of a file."""
        ending = f"-{_make_key(server, filename)}{_SUFFIX}"
        folder = self.folder
        for entry in reversed(_list_entries(folder)):
            if entry.name.endswith(ending) and (version := self._read(folder, entry)) is not None:
                return version
        return None

    def list_last_writes(self) -> list[Version]:
        """Return the newest version of each file that this bridge wrote or deleted last; newest first."""
        newest: dict[str, _Entry] = {}
        folder = self.folder
        for entry in reversed(_list_entries(folder)):
            newest.setdefault(entry.key, entry)
        found = (self._read(folder, entry) for entry in newest.values())
        return [version for version in found if version is not None and version.kind != "found"]

    def load(self, server: str, filename: str, name: str) -> Version:
        """Return a version by its name; a deletion has no content and is not found."""
        for version in self.list_versions(server, filename):
            if version.name == name and version.content is not None:
                return version
        raise NotFound(
            f"No version {name} of {filename} on {server} is kept.",
            next_step="Call restore_file with list_only to see what is kept.",
        )

    def find_undo(self, server: str, filename: str, current: str | None) -> Version:
        """Return the version before the current content; repeated undos go further back each time."""
        versions = self.list_versions(server, filename)
        names = [version.name for version in versions]
        at = 0
        # If the newest version is itself a restore, continue from the version that it restored. Otherwise two
        # undos would swap the same two contents.
        if versions and versions[0].content == current and versions[0].restored in names:
            at = names.index(versions[0].restored)
        for version in versions[at:]:
            if version.content is not None and version.content != current:
                return version
        raise NotFound(
            f"No earlier version of {filename} on {server} is kept.",
            next_step="Call restore_file with list_only to see what is kept, and name a version.",
        )

    def _read(self, folder: Path, entry: _Entry) -> Version | None:
        try:
            version = msgspec.json.decode(durable.read(folder / entry.name), type=Version)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None  # pruned by another process, or not a version
        return msgspec.structs.replace(version, name=entry.name.removesuffix(_SUFFIX))


def _list_entries(folder: Path) -> list[_Entry]:
    """List the versions in the folder, oldest first."""
    entries: list[_Entry] = []
    with os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(_SUFFIX) and not file.name.startswith("."):
                with suppress(FileNotFoundError):  # pruned by another process since the scan began
                    entries.append(_Entry(file.name, file.stat().st_size))
    return sorted(entries, key=attrgetter("name"))


def _make_key(server: str, filename: str) -> str:
    return hashlib.sha256(f"{server}\0{filename}".encode()).hexdigest()[:_KEY_LETTERS]


def digest(content: str) -> str:
    """Return the SHA-256 of a content, in hex."""
    return hashlib.sha256(content.encode()).hexdigest()
