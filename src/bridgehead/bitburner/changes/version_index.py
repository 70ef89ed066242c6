"""VersionIndex: which versions of files are kept, in SQLite. A write costs the same with any number of them.

The versions themselves are files in the same folder, and the folder is authoritative: opening the index adds
missing files and drops deleted ones. So neither a killed process, a deleted index nor versions removed by
another program need any repair. Blocks: call from a thread.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import astuple

from bridgehead.runtime.stores import sqlite

from ..game import timestamps

FILE = ".index.sqlite"
SUFFIX = ".json"
_KEY_LETTERS = 16
_VERSION = 1
_SCHEMA = (
    """CREATE TABLE versions (
        name TEXT PRIMARY KEY,
        place TEXT NOT NULL,
        server TEXT NOT NULL,
        filename TEXT NOT NULL,
        at REAL NOT NULL,
        because TEXT NOT NULL,
        kind TEXT NOT NULL,
        restored TEXT NOT NULL,
        digest TEXT,
        bytes INTEGER NOT NULL,
        size INTEGER NOT NULL,
        is_last_write INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX versions_of_a_file ON versions (place, name)",
    "CREATE INDEX versions_by_age ON versions (is_last_write, name)",
    # At most one last write per file; queries for it need no sort.
    "CREATE UNIQUE INDEX last_write_of_a_file ON versions (place) WHERE is_last_write = 1",
    # Counting 20,000 rows takes a millisecond, and every write asks whether there is room.
    "CREATE TABLE totals (is_last_write INTEGER PRIMARY KEY, count INTEGER, size INTEGER)",
    "INSERT INTO totals VALUES (0, 0, 0), (1, 0, 0)",
    """CREATE TRIGGER count_added AFTER INSERT ON versions BEGIN
        UPDATE totals SET count = count + 1, size = size + new.size WHERE is_last_write = new.is_last_write;
    END""",
    """CREATE TRIGGER count_removed AFTER DELETE ON versions BEGIN
        UPDATE totals SET count = count - 1, size = size - old.size WHERE is_last_write = old.is_last_write;
    END""",
    """CREATE TRIGGER count_moved AFTER UPDATE OF is_last_write ON versions BEGIN
        UPDATE totals SET count = count - 1, size = size - old.size WHERE is_last_write = old.is_last_write;
        UPDATE totals SET count = count + 1, size = size + new.size WHERE is_last_write = new.is_last_write;
    END""",
)
_COLUMNS = "name, server, filename, at, because, kind, restored, digest, bytes, size"

Kind = Literal["found", "written", "deleted"]


class Entry(Struct, frozen=True):
    """A kept version without its content; names sort by time."""

    name: str
    server: str
    filename: str
    at: float
    because: str
    kind: Kind
    restored: str
    digest: str | None
    """SHA-256 of the content; None for a deletion."""
    bytes: int
    """Size of the content in UTF-8."""
    size: int
    """Size of the version's file."""

    @property
    def kept_at(self) -> str:
        """The time at which it was kept, in UTC."""
        return timestamps.format_utc(self.at)


class VersionIndex:
    """The index of one folder, shared by all processes that use it."""

    def __init__(self, folder: Path, read: Callable[[str], Entry | None]) -> None:
        """`read` makes the entry of a version's file that the index lacks; None if it is not a version."""
        self._path = folder / FILE
        # The connection is used by several threads; each use holds this lock from its first statement to the
        # end of its transaction.
        self._lock = threading.Lock()
        sqlite.create_private(self._path)
        try:
            self._connection = self._open()
        except sqlite3.DatabaseError:
            # Not a database, or a damaged one. Everything in it is in the versions' files too.
            for file in folder.glob(f"{FILE}*"):
                file.unlink()
            sqlite.create_private(self._path)
            self._connection = self._open()
        try:
            self._match_folder(folder, read)
        except BaseException:
            self._connection.close()
            raise

    def _open(self) -> sqlite3.Connection:
        connection = sqlite.open_database(
            self._path, _SCHEMA, _VERSION, what="index of versions", one_thread=False
        )
        # Not flushed for each commit: entries lost in a power cut are rebuilt from the folder.
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    @property
    def is_there(self) -> bool:
        """Whether its file is still in the folder."""
        return self._path.exists()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _match_folder(self, folder: Path, read: Callable[[str], Entry | None]) -> None:
        # The index first, then the folder: a version that another process adds meanwhile looks new to us and
        # is added once more, which changes nothing. The other way round it would look gone.
        with self._lock:
            known = {name for (name,) in self._connection.execute("SELECT name FROM versions")}
        with os.scandir(folder) as files:
            there = {
                file.name.removesuffix(SUFFIX)
                for file in files
                if file.name.endswith(SUFFIX) and not file.name.startswith(".")
            }
        entries = [entry for name in sorted(there - known) if (entry := read(name)) is not None]
        with self._lock, sqlite.transaction(self._connection) as connection:
            for entry in entries:
                _insert(connection, entry)
            connection.executemany("DELETE FROM versions WHERE name = ?", ((name,) for name in known - there))

    def add(self, entry: Entry) -> None:
        """Add a version whose file is on the disk."""
        with self._lock, sqlite.transaction(self._connection) as connection:
            _insert(connection, entry)

    def drop(self, names: Sequence[str]) -> None:
        """Drop versions beyond the limits.

        An older write of the same file does not become its last one: the game does not hold it.
        """
        with self._lock, sqlite.transaction(self._connection) as connection:
            connection.executemany("DELETE FROM versions WHERE name = ?", ((name,) for name in names))

    def undo_add(self, name: str) -> None:
        """Forget a version that was never written to the game; the last write is the one before it again."""
        with self._lock, sqlite.transaction(self._connection) as connection:
            row = connection.execute("SELECT place FROM versions WHERE name = ?", (name,)).fetchone()
            if row is not None:
                connection.execute("DELETE FROM versions WHERE name = ?", (name,))
                _mark_last_write(connection, *row)

    def newest(self, key: str) -> str:
        """Return the name of the newest version of the file with this key; empty without one."""
        with self._lock:
            row = self._connection.execute(
                "SELECT name FROM versions WHERE place = ? ORDER BY name DESC LIMIT 1", (key,)
            ).fetchone()
        return row[0] if row else ""

    def list_since(self, name: str) -> list[str]:
        """Return the names of the versions from this name on."""
        with self._lock:
            rows = self._connection.execute("SELECT name FROM versions WHERE name >= ?", (name,)).fetchall()
        return [name for (name,) in rows]

    def list_entries(self, server: str, filename: str | None, limit: int = -1) -> list[Entry]:
        """List the versions of a file, or of all files of a server, newest first."""
        if filename is None:
            return self._select("server = ? ORDER BY name DESC LIMIT ?", server, limit)
        return self._select(
            "place = ? AND server = ? ORDER BY name DESC LIMIT ?", make_key(server, filename), server, limit
        )

    def list_last_writes(self) -> list[Entry]:
        """Return the newest version of each file that the bridge wrote or deleted last; newest first."""
        return self._select(
            "is_last_write = 1 AND name = (SELECT MAX(name) FROM versions later "
            "WHERE later.place = versions.place) ORDER BY name DESC"
        )

    def find_last_write(self, server: str, filename: str) -> Entry | None:
        """Return the last content of a file that the bridge wrote, or its deletion."""
        entries = self._select("place = ? AND is_last_write = 1", make_key(server, filename))
        return entries[0] if entries else None

    def has_excess(self, max_count: int, max_size: int) -> bool:
        """Return whether there are versions beyond the limits."""
        with self._lock:
            over = self._connection.execute(
                "SELECT 1 FROM totals WHERE count > ? OR size > ?", (max_count, max_size)
            ).fetchone()
        return over is not None

    def list_excess(self, max_count: int, max_size: int) -> list[Entry]:
        """Return the oldest versions beyond the limits; each kind has its own."""
        excess: list[Entry] = []
        with self._lock:
            for group, count, size in self._connection.execute("SELECT * FROM totals").fetchall():
                if count <= max_count and size <= max_size:
                    continue
                oldest_first = self._connection.execute(
                    f"SELECT {_COLUMNS} FROM versions WHERE is_last_write = ? ORDER BY name",  # noqa: S608
                    (group,),
                )
                for entry in (Entry(*row) for row in oldest_first):
                    if count <= max_count and size <= max_size:
                        break
                    excess.append(entry)
                    count, size = count - 1, size - entry.size  # noqa: PLW2901 - what is left
        return excess

    def _select(self, condition: str, *values: object) -> list[Entry]:
        with self._lock:
            rows = self._connection.execute(
                f"SELECT {_COLUMNS} FROM versions WHERE {condition}",  # noqa: S608 - conditions of this class
                values,
            ).fetchall()
        return [Entry(*row) for row in rows]


def _insert(connection: sqlite3.Connection, entry: Entry) -> None:
    place = make_key(entry.server, entry.filename)
    if entry.kind != "found":
        # The previous last write becomes a replaced content.
        connection.execute(
            "UPDATE versions SET is_last_write = 0 WHERE place = ? AND is_last_write = 1 AND name < ?",
            (place, entry.name),
        )
    connection.execute(
        f"INSERT OR IGNORE INTO versions ({_COLUMNS}, place, is_last_write) "  # noqa: S608 - our own columns
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? AND NOT EXISTS "
        "(SELECT 1 FROM versions WHERE place = ? AND is_last_write = 1))",
        (*astuple(entry), place, entry.kind != "found", place),
    )


def _mark_last_write(connection: sqlite3.Connection, place: str) -> None:
    """Mark the last write of a file again, after the previous one was removed."""
    # A found content is the game's own, never a write of the bridge.
    newest = connection.execute(
        "SELECT name FROM versions WHERE place = ? AND kind <> 'found' ORDER BY name DESC LIMIT 1", (place,)
    ).fetchone()
    if newest is not None:
        connection.execute("UPDATE versions SET is_last_write = 1 WHERE name = ?", newest)


def make_key(server: str, filename: str) -> str:
    """Return the key of a file in the names of its versions."""
    return hashlib.sha256(f"{server}\0{filename}".encode()).hexdigest()[:_KEY_LETTERS]
