"""Leftovers: counts of a replica that ended while the database was gone, in files until the next adds them.

Each file is one batch and has its id, so that a batch that was added already is not added again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

import msgspec

from bridgehead.runtime import durable, logs
from bridgehead.runtime.errors import StorageError

from ..calling.usage import Key, UsageCounts

_FOLDER = "unwritten-usage"
_FORMAT = list[tuple[Key, UsageCounts]]

_log = logs.logger("mercury.usage")


class Leftovers:
    """The files of one machine. All of this blocks."""

    def __init__(self, open_state: Callable[[], Path]) -> None:
        self._open_state = open_state

    def keep(self, number: UUID, counts: Mapping[Key, UsageCounts]) -> None:
        """Keep a batch on the disk; where that fails too, what it says goes to the log."""
        data = msgspec.json.encode(list(counts.items()))
        try:
            folder = self._open_state() / _FOLDER
            folder.mkdir(mode=0o700, exist_ok=True)
            durable.replace(folder / f"{number}.json", data)
        except (OSError, StorageError) as failure:
            _log.error("usage cannot be written", reason=str(failure), counts=data.decode())
        else:
            _log.warn("usage is written when the bridge starts again", folder=folder, rows=len(counts))

    def read(self) -> dict[UUID, dict[Key, UsageCounts]]:
        """Return the batches that are there; a file that cannot be read stays as it is."""
        found: dict[UUID, dict[Key, UsageCounts]] = {}
        try:
            files = sorted((self._open_state() / _FOLDER).glob("*.json"))
        except (OSError, StorageError):  # a replica without a disk has none
            return found
        for file in files:
            try:
                found[UUID(file.stem)] = dict(msgspec.json.decode(durable.read(file), type=_FORMAT))
            except (OSError, ValueError) as failure:
                _log.warn("usage of an earlier run cannot be read", file=file, reason=str(failure))
        return found

    def remove(self, number: UUID) -> None:
        """Forget a batch that was added."""
        try:
            durable.remove(self._open_state() / _FOLDER / f"{number}.json")
        except (OSError, StorageError) as failure:
            _log.warn("usage of an earlier run cannot be removed", reason=str(failure))
