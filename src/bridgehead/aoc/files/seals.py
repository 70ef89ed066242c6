"""Seals: prove that a grade in a file was assigned by a server of this user.

A record above claimed carries an HMAC over its fields, made with a key that only the server's user can read.
One whose seal does not fit (edited, copied from another machine, written by another program) counts as
claimed.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from bridgehead.runtime import durable
from bridgehead.runtime.errors import StorageError

from .entries import CLAIMED, Entry, NewEntry

KEY_BYTES = 32
_SEAL_BYTES = 16


class Seals:
    """Signs and checks the records of one year, with a key that is read or created on first use.

    Without a place for a key nothing can be signed, and every grade counts as claimed.
    """

    def __init__(self, find_file: Callable[[], Path] | None = None, year: int = 0) -> None:
        self._find_file = find_file
        # Part of every seal: a line copied from one year to another would otherwise fit there.
        self._year = year
        self._key: bytes | None = None
        self._lock = threading.Lock()  # two threads must not make two keys

    def sign(self, day: int, *fields: Any) -> str | None:
        """Return the seal of some fields of a day."""
        key = self._read_key(is_made=True)
        return None if key is None else self._digest(key, day, fields)

    def fits(self, seal: Any, day: int, *fields: Any) -> bool:
        """Return whether a seal is ours."""
        key = self._read_key(is_made=False)
        if key is None or not isinstance(seal, str):
            return False

        return hmac.compare_digest(seal.encode(errors="replace"), self._digest(key, day, fields).encode())

    def sign_entry(self, day: int, entry: NewEntry) -> NewEntry:
        """Seal a new record that is above claimed."""
        from msgspec.structs import replace

        fields = (entry.llm, entry.phase, entry.time, entry.timestamp, entry.measure, entry.grade)
        return replace(entry, seal=self.sign(day, *fields, entry.details))

    def demote(self, day: int, entries: Iterable[Entry]) -> None:
        """Set the grade of entries without a valid seal to claimed. A copied sealed line counts once."""
        seen: set[str] = set()
        for entry in entries:
            if entry.grade_key is None:
                continue
            measure = None if entry.measure_key is None else entry.measure
            fields = (entry.llm, entry.phase, entry.time, entry.timestamp, measure, entry.grade_key)
            if entry.seal in seen or not self.fits(entry.seal, day, *fields, entry.details_key):
                entry.grade_key = CLAIMED
            else:
                seen.add(entry.seal)

    def _digest(self, key: bytes, day: int, fields: tuple[Any, ...]) -> str:
        message = msgspec.json.encode((self._year, day, fields))
        return hmac.digest(key, message, "sha256")[:_SEAL_BYTES].hex()

    def _read_key(self, *, is_made: bool) -> bytes | None:
        if self._key is not None or self._find_file is None:
            return self._key
        with self._lock:
            path = self._find_file()
            try:
                if is_made and not path.exists():
                    _make_key(path)
                key = durable.read(path)
            except FileNotFoundError:
                return None  # no key yet: no server of this user has graded anything
            except OSError as failure:
                raise StorageError(
                    f"The key {path} cannot be used: {failure.strerror or failure}.",
                    next_step="Let this user read it, or name another file in AOC_GRADE_KEY_FILE.",
                    path=str(path),
                ) from failure
            if len(key) < _SEAL_BYTES:
                raise StorageError(
                    f"The key {path} has {len(key)} bytes. A short key can be guessed.",
                    next_step=f"Remove the file, and the server makes a new key, or put {KEY_BYTES} random "
                    "bytes into it.",
                    path=str(path),
                )
            self._key = key
            return key


def _make_key(path: Path) -> None:
    """Write a new key, unless another process does so at the same moment."""
    temporary = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    durable.replace(temporary, os.urandom(KEY_BYTES))
    try:
        # A link, not a rename: it fails if a key exists meanwhile, and no reader sees half a key.
        durable.retry_while_locked(path.hardlink_to, temporary)
    except FileExistsError:
        pass
    finally:
        durable.remove(temporary)
    durable.flush_folder(path.parent)
