"""Log handler: writes lines to a stream, and never waits long for whoever should read it.

A client may start a server and not read its standard error. A pipe then takes some lines and no more; a
server that waited for room would stand still for ever. So lines are left out there, and counted.
"""

from __future__ import annotations

import logging
import select
from typing import TextIO

PATIENCE_SECONDS = 0.2
"""How long the rest of a long line may wait for room."""
_ROOM = 4096
"""Bytes that a pipe takes without waiting, where it says that it has room."""
_BYTES_A_CHARACTER = 4
"""At most."""


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes what there is room for."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it where there is no room."""
        if not _has_room(self.stream, 0):
            self._lost += 1
            return
        try:
            text = self.format(record) + self.terminator
            if self._lost:
                text = self._confession() + text
            self._write(text)
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001  (as every handler of the standard library does)
            self.handleError(record)

    def _confession(self) -> str:
        """Give a line that says what is not there."""
        lost, self._lost = self._lost, 0
        values = {
            "name": "bridgehead.log",
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "log entries left out, since nobody read them",
            "fields": {"count": lost},
        }
        return self.format(logging.makeLogRecord(values)) + self.terminator

    def _write(self, text: str) -> None:
        size = _ROOM if text.isascii() else _ROOM // _BYTES_A_CHARACTER
        for begin in range(0, len(text), size):
            if begin and not _has_room(self.stream, PATIENCE_SECONDS):
                self._lost += 1
                return
            self.stream.write(text[begin : begin + size])
            self.flush()


def _has_room(stream: TextIO, seconds: float) -> bool:
    """Tell whether something can be written without waiting; what cannot be asked is believed to have it."""
    try:
        return bool(select.select([], [stream.fileno()], [], seconds)[1])
    except (OSError, ValueError, AttributeError):
        return True
