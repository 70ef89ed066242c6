"""Ledger import: takes over what version 0.1 counted today, once. It kept the day in a file, `today.json`.

The hash of what was taken over is committed together with it, so a process that dies before it could rename
the file does not count it twice. The file keeps its content under another name.
"""

from __future__ import annotations

import sqlite3
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import sqlite

from .budget import commit_money
from .usage import UsageCounts, add_usage

OLD_FILE = "today.json"
IMPORTED_FILE = "today.json.imported"
CLIENT = "(before 0.2)"
"""Whom it is counted for: version 0.1 did not tell clients apart."""


class Day(Struct):
    """One day's totals, as version 0.1 wrote them."""

    day: str
    committed_usd: float = 0.0
    models: dict[str, UsageCounts] = {}


def import_ledger(connection: sqlite3.Connection, folder: Path) -> None:
    """Take over the old file, if there is one; raises `StorageError` where it cannot be read."""
    path = folder / OLD_FILE
    if not path.exists():
        return
    from filelock import FileLock, Timeout  # 0.8 MB that nobody else here needs

    try:
        # The lock of version 0.1: a process of it that still runs must not write in between.
        with FileLock(folder / "today.lock", timeout=sqlite.BUSY_SECONDS, mode=0o600):
            data = path.read_bytes()
            _add(connection, msgspec.json.decode(data, type=Day), sha256(data).hexdigest())
            path.replace(folder / IMPORTED_FILE)
    except FileNotFoundError:
        return  # another process was faster
    except (OSError, Timeout, msgspec.DecodeError) as problem:
        raise StorageError(
            f"The usage file of version 0.1, {path}, cannot be imported: {problem}.",
            next_step="Fix the file or move it away; without it, today's usage starts from zero.",
        ) from problem


def _add(connection: sqlite3.Connection, day: Day, digest: str) -> None:
    with sqlite.transaction(connection):
        is_new = connection.execute("INSERT OR IGNORE INTO imported VALUES (?)", (digest,)).rowcount
        if is_new:
            for model, counts in day.models.items():
                add_usage(connection, day.day, model, CLIENT, counts)
            commit_money(connection, day.day, CLIENT, day.committed_usd)
