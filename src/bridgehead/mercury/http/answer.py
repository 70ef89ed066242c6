"""Answer: what comes back for a request, as far as it has come, and whoever waits for more of it.

Each of the two protocols fills it in its own way; what is read of it is read in the same way.
"""

from __future__ import annotations

import asyncio

from .transport import ConnectionBroken

MOST_KEPT = 256 * 1024
"""Bytes of a body that are kept unread; above this the sender has to wait."""


class Answer:
    """The answer to one request."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._kept = 0
        """Bytes that have come and were not read yet."""
        self._has_head = False
        self._is_complete = False
        self._lost: Exception | None = None
        """Why no more comes, where it is not complete."""
        self.status = 0

    async def head(self) -> None:
        """Wait for the head of the answer."""
        while not self._has_head:
            if self._lost is not None:
                raise self._lost
            await self._something(None)

    def header(self, name: str) -> str | None:
        """Give the value of a header."""
        value = self._headers.get(name.encode())
        return None if value is None else value.decode("latin-1")

    async def read(self, seconds: float) -> bytes:
        """Give what has come of the body; nothing is the end."""
        while not self._pieces:
            if self._is_complete:
                return b""
            if self._lost is not None:
                raise self._lost
            await self._something(seconds)
        found = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        kept, self._kept = self._kept, 0
        self._was_read(kept)
        return found

    def _was_read(self, kept: int) -> None:
        """Let the sender go on, who may have had to wait."""
        raise NotImplementedError

    def _lose(self, why: Exception | str) -> None:
        """Take in that no more comes; the first reason is the one that counts."""
        if self._lost is None:
            self._lost = ConnectionBroken(why) if isinstance(why, str) else why
        self._wake()

    async def _something(self, seconds: float | None) -> None:
        """Wait until something has happened."""
        waiter = self._waiter = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
