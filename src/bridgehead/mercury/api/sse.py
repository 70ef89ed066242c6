"""SSE: finds the events in a stream of bytes, however it is cut into pieces. Pure.

Only the `data` of an event matters here; names, ids, comments and retry hints are passed over.
"""

from __future__ import annotations

_DATA = b"data:"


class EventTooLong(Exception):
    """An event has more bytes than may be kept."""


class Events:
    """The events of one stream, in the order in which they become complete."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Take bytes in and give the data of each event that they complete."""
        data = self._rest + piece if self._rest else piece
        if b"\r" in data:
            data = _unified(data)
        *events, rest = data.split(b"\n\n")
        if len(rest) > self._most:
            raise EventTooLong
        self._rest = rest
        return [found for event in events if (found := _data_of(event))]

    def end(self) -> list[bytes]:
        """Give what is left when the stream ended without an empty line."""
        rest, self._rest = self._rest, b""
        found = _data_of(rest.rstrip(b"\r\n"))
        return [found] if found else []


def _unified(data: bytes) -> bytes:
    """Make every line end with a line feed; a carriage return at the very end may be half of one."""
    if not data.endswith(b"\r"):
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return _unified(data[:-1]) + b"\r" if len(data) > 1 else data


def _data_of(event: bytes) -> bytes:
    if event.startswith(b"data: ") and b"\n" not in event:
        return event[6:]
    found = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(_DATA)]
    return b"\n".join(found)
