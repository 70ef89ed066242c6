"""Log handler: writes lines to a stream, and never waits long for whoever should read it.

A client may start a server and not read its standard error. A pipe then takes some lines and no more; a
server that waited for room would stand still for ever. So lines are left out there, and counted.

Windows cannot say whether a pipe has room. There a thread writes, and while it waits lines are left out.
"""

from __future__ import annotations

import logging
import queue
import select
import sys
import threading
from typing import TextIO

PATIENCE_SECONDS = 0.2
"""How long a line, or the rest of a long one, may wait for room."""
CAN_ASK = sys.platform != "win32"
"""Whether the system says of a pipe that it has room."""
_BYTES_A_CHARACTER = 4
"""At most."""


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes what there is room for."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lost = 0
        self._thread = None if CAN_ASK else _WritingThread(stream)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it where there is no room."""
        if not self._is_ready():
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

    def _is_ready(self) -> bool:
        return _has_room(self.stream, 0) if self._thread is None else self._thread.is_idle

    def _confession(self) -> str:
        """Give a line that says what is not there."""
        lost, self._lost = self._lost, 0
        values = {
            "name": "bridgehead.log",
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "log entries dropped, because nothing reads them",
            "fields": {"count": lost},
        }
        return self.format(logging.makeLogRecord(values)) + self.terminator

    def _write(self, text: str) -> None:
        if self._thread is not None:
            self._thread.write(text)
            return
        room = select.PIPE_BUF  # bytes that a pipe takes where it says that it has room; fewer on macOS
        size = room if text.isascii() else room // _BYTES_A_CHARACTER
        for begin in range(0, len(text), size):
            if begin and not _has_room(self.stream, PATIENCE_SECONDS):
                self._lost += 1
                return
            self.stream.write(text[begin : begin + size])
            self.flush()


class _WritingThread:
    """Writes one text at a time, and lets its caller go on where that takes long."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._texts: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._is_written = threading.Event()
        self._is_written.set()
        self._thread: threading.Thread | None = None

    @property
    def is_idle(self) -> bool:
        """Tell whether all that was given has been taken."""
        return self._is_written.is_set()

    def write(self, text: str) -> None:
        """Give a text to write, and wait a little: what is logged just before the end is there then."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
            self._thread.start()
        self._is_written.clear()
        self._texts.put(text)
        self._is_written.wait(PATIENCE_SECONDS)

    def _run(self) -> None:
        while True:
            text = self._texts.get()
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):
                return  # nobody is there any more, and what comes is left out
            self._is_written.set()


def _has_room(stream: TextIO, seconds: float) -> bool:
    """Tell whether something can be written without waiting; what cannot be asked is believed to have it."""
    try:
        return bool(select.select([], [stream.fileno()], [], seconds)[1])
    except (OSError, ValueError, AttributeError):
        return True
