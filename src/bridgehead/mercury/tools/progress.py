"""Progress: send a growing answer to the client as progress notifications, with heartbeats in between.

The first piece is sent at once; later ones are joined and sent at most every 50 ms. While the client does not
read, the caller waits, so the stream is not read either. Does nothing for calls without a progress token.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from bridgehead.mcp import Context

from ..api.stream import StreamedAnswer

HEARTBEAT_SECONDS = 5.0
"""After this long without progress a heartbeat is sent. Many clients give up after 60 s without any."""
TOGETHER_SECONDS = 0.05
"""Minimum time between two notifications; pieces in between are joined."""


class Progress:
    """Progress of one call; entered while the call runs."""

    def __init__(self, context: Context[Any]) -> None:
        self._context = context
        self._is_wanted = context.wants_progress
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._count = 0
        self._has_begun = False
        """Whether a piece of the text was sent; the first is sent at once."""
        self._news: StreamedAnswer | None = None
        """The text, if it has grown since the last notification."""
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._is_wanted:
            self._timer = self._loop.call_later(HEARTBEAT_SECONDS, self._send_due)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()
            with suppress(asyncio.CancelledError):
                await self._sending

    async def report(self, text: StreamedAnswer) -> None:
        """Report that a text has grown; waits for the client, so a slow one slows the stream."""
        if not self._is_wanted:
            return
        now = self._loop.time()
        if self._sending is not None:
            self._news = text
            await asyncio.shield(self._sending)
        elif now - self._last >= TOGETHER_SECONDS or not self._has_begun:
            self._last = now
            self._has_begun = True
            await self._send(text)
        elif self._news is None:
            self._news = text
            self._arm(self._last + TOGETHER_SECONDS)

    async def send_rest(self) -> None:
        """Send the remaining text at the end of the answer."""
        if self._sending is not None:
            await self._sending
        if self._is_wanted and self._news is not None:
            await self._send(self._news)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._send_due)

    def _send_due(self) -> None:
        """Send the news or a heartbeat, or rearm if neither is due."""
        silent = self._loop.time() - self._last
        if self._sending is not None or (self._news is None and silent < HEARTBEAT_SECONDS):
            # At least a millisecond: while a notification waits for a slow client, the timer would spin.
            self._arm(self._loop.time() + max(0.001, min(HEARTBEAT_SECONDS, HEARTBEAT_SECONDS - silent)))
            return

        async def send_now() -> None:
            self._last = self._loop.time()
            await self._send(self._news)

        def forget(task: asyncio.Task[None]) -> None:
            self._sending = None

        self._sending = self._loop.create_task(send_now())
        self._sending.add_done_callback(forget)
        self._arm(self._loop.time() + HEARTBEAT_SECONDS)

    async def _send(self, text: StreamedAnswer | None) -> None:
        self._news = None
        self._count += 1
        await self._context.progress(self._count, message=None if text is None else text.take_new_text())
