"""Progress: tells a client how an answer grows, soon but not too often, and that it is still being worked on.

The first piece is sent at once, further ones together every 50 ms at most, and in silence a sign of life.
Where the client does not read, the stream is not read on either. Only for calls with a progress token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

from bridgehead.mcp import Context

TOGETHER_SECONDS = 0.05
"""Pieces that come within this time go out together."""


class Growing(Protocol):
    """A text that grows, or is replaced."""

    def take_news(self) -> str:
        """Return what came since this was last called."""


class Progress:
    """The progress of one call, towards its client; entered while the call is under way."""

    def __init__(self, context: Context[Any], heartbeat: float) -> None:
        self._context = context
        self._heartbeat = heartbeat
        self._is_wanted = context.wants_progress
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._count = 0
        self._has_begun = False
        """Whether a piece of the text was sent; the first is sent at once."""
        self._news: Growing | None = None
        """What has grown and was not sent yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._is_wanted:
            self._timer = self._loop.call_later(self._heartbeat, self._send_due)
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

    def report(self, text: Growing) -> Awaitable[None] | None:
        """Note that a text has grown; returns something to wait for where the client is slow."""
        if not self._is_wanted:
            return None
        if self._sending is not None:
            self._news = text
            return asyncio.shield(self._sending)
        now = self._loop.time()
        if now - self._last >= TOGETHER_SECONDS or not self._has_begun:
            self._last = now
            self._has_begun = True
            return self._send(text)
        if self._news is None:
            self._news = text
            self._arm(self._last + TOGETHER_SECONDS)
        return None

    async def send_rest(self) -> None:
        """Send what has not been sent, at the end."""
        if self._sending is not None:
            await self._sending
        if self._is_wanted and self._news is not None:
            await self._send(self._news)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._send_due)

    def _send_due(self) -> None:
        """Send what has come, or a sign of life, or look again later."""
        silent = self._loop.time() - self._last
        if self._sending is not None or (self._news is None and silent < self._heartbeat):
            self._arm(self._loop.time() + max(0.001, min(self._heartbeat, self._heartbeat - silent)))
            return
        self._sending = self._loop.create_task(self._send_now())
        self._sending.add_done_callback(self._forget_task)
        self._arm(self._loop.time() + self._heartbeat)

    async def _send_now(self) -> None:
        self._last = self._loop.time()
        await self._send(self._news)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._sending = None

    async def _send(self, text: Growing | None) -> None:
        self._news = None
        self._count += 1
        await self._context.progress(self._count, message=None if text is None else text.take_news())
