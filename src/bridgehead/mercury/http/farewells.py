"""Farewells: the GOAWAY frames among the bytes of an HTTP/2 connection. Pure.

With one of them a server says that it takes no new requests, and up to which it goes on to serve. h2 holds a
connection to be over with the first, so they are taken out of the bytes before h2 sees these.
"""

from __future__ import annotations

from msgspec import Struct

_HEAD = 9
"""Bytes before what a frame carries: its length (3), kind, flags, stream (4)."""
_GOAWAY = 7
_LEAST = 8
_MOST = 16_384
_STREAM_BITS = 0x7FFF_FFFF


class Farewell(Struct, frozen=True):
    """What a server says when it goes."""

    last_stream: int
    """Requests up to this one it may have worked on."""
    code: int


class Farewells:
    """Takes farewells out of bytes, which come in any pieces."""

    def __init__(self) -> None:
        self._held = b""
        """The beginning of a frame that has not come far enough to tell what it is."""
        self._passing = 0
        """Bytes that still belong to a frame that is passed on."""

    def feed(self, data: bytes) -> tuple[bytes, list[Farewell]]:
        """Take bytes, and give those for h2, and the farewells that were among them."""
        passed: list[bytes] = []
        found: list[Farewell] = []
        data = self._held + data
        position = 0
        while position < len(data):
            if not self._passing:
                head = data[position : position + _HEAD]
                length = int.from_bytes(head[:3])
                if len(head) < _HEAD:
                    break
                if head[3] == _GOAWAY and _LEAST <= length <= _MOST:
                    end = position + _HEAD + length
                    if end > len(data):
                        break
                    found.append(_farewell(data[position + _HEAD : end]))
                    position = end
                    continue
                self._passing = _HEAD + length
            piece = data[position : position + self._passing]
            passed.append(piece)
            self._passing -= len(piece)
            position += len(piece)
        self._held = data[position:]
        return b"".join(passed), found


def _farewell(payload: bytes) -> Farewell:
    last = int.from_bytes(payload[:4]) & _STREAM_BITS
    return Farewell(last, int.from_bytes(payload[4:8]))
