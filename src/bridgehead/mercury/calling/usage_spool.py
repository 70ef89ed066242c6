"""Usage spool: files with the counts of a replica that stopped while PostgreSQL was down.

The next start reads them. Each file is one batch with its id, so a batch that PostgreSQL already has is not
added again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

import msgspec

from bridgehead.runtime import durable, logs
from bridgehead.runtime.errors import StorageError

from .usage import Key, UsageCounts

_FOLDER = "unwritten-usage"
_FORMAT = list[tuple[Key, UsageCounts]]

_log = logs.logger("mercury.usage")


class UsageSpool:
    """The files of one machine. Every method blocks."""

    def __init__(self, open_state: Callable[[], Path]) -> None:
        self._open_state = open_state

    def keep(self, number: UUID, counts: Mapping[Key, UsageCounts]) -> None:
        """Write a batch to the disk; if that fails too, to the log."""
        data = msgspec.json.encode(list(counts.items()))
        try:
            folder = self._open_state() / _FOLDER
            # Private: names of clients are in it.
            folder.mkdir(mode=0o700, exist_ok=True)
            durable.replace(folder / f"{number}.json", data)
        except (OSError, StorageError) as failure:
            _log.error("usage cannot be written", reason=str(failure), counts=data.decode())
        else:
            _log.warn("usage is written when the bridge starts again", folder=folder, rows=len(counts))

    def read(self) -> dict[UUID, dict[Key, UsageCounts]]:
        """Return the batches on the disk; a file that cannot be read stays as it is."""
        batches: dict[UUID, dict[Key, UsageCounts]] = {}
        try:
            files = sorted((self._open_state() / _FOLDER).glob("*.json"))
        except (OSError, StorageError):  # a replica without a disk has none
            return batches
        for file in files:
            try:
                batches[UUID(file.stem)] = dict(msgspec.json.decode(durable.read(file), type=_FORMAT))
            except (OSError, ValueError) as failure:
                _log.warn("usage of an earlier run cannot be read", file=file, reason=str(failure))
        return batches

    def remove(self, number: UUID) -> None:
        """Delete a batch that PostgreSQL has."""
        try:
            durable.remove(self._open_state() / _FOLDER / f"{number}.json")
        except (OSError, StorageError) as failure:
            _log.warn("usage of an earlier run cannot be removed", reason=str(failure))
