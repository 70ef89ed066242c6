"""Lines: splits chunks of bytes into newline-delimited messages of bounded size. No I/O."""

from __future__ import annotations


class TooLong:
    """Stands for a line over the limit, which was dropped."""


TOO_LONG = TooLong()


class Lines:
    """Collects chunks and returns whole lines; an over-long line uses no memory and is reported once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """Add a chunk and return the lines that it completes, without blank ones."""
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | TooLong] = []
        for end in ends:
            self._keep(end)
            lines += self._take()
        self._keep(rest)
        return lines

    def end(self) -> list[bytes | TooLong]:
        """Return the last line, if the input ended without a newline."""
        return self._take()

    def _keep(self, piece: bytes) -> None:
        if self._skipping or not piece:
            return
        self._size += len(piece)
        if self._size > self._limit:
            self._skipping = True
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def _take(self) -> list[bytes | TooLong]:
        pieces, skipped = self._pieces, self._skipping
        self._pieces, self._size, self._skipping = [], 0, False
        if skipped:
            return [TOO_LONG]
        line = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return [line] if line.strip() else []
