"""Progress: tells a client how an answer grows, soon but not too often, and that it is still being worked on.

The first piece goes out at once, further ones together every 50 ms at most, and in silence a sign of life is
sent. Where the client does not read, the stream is not read on either. Only for calls with a progress token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from bridgehead.mcp import Context

TOGETHER_SECONDS = 0.05
"""Pieces that come within this time go out together."""


class Progress:
    """The progress of one call, towards its client."""

    def __init__(
        self, context: Context[Any], heartbeat: float, unsent: Callable[[], str] = lambda: ""
    ) -> None:
        self._context = context
        self._heartbeat = heartbeat
        self._unsent = unsent
        self._is_wanted = context.progress_token is not None
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._count = 0
        self._has_news = False
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._is_wanted:
            self._timer = self._loop.call_later(self._heartbeat, self._due)
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

    def news(self) -> Awaitable[None] | None:
        """Note that the text has changed; gives something to wait for where the client is slow."""
        if not self._is_wanted:
            return None
        if self._sending is not None:
            self._has_news = True
            return asyncio.shield(self._sending)
        now = self._loop.time()
        if now - self._last >= TOGETHER_SECONDS or not self._count:
            self._last = now
            return self._send(self._unsent())
        if not self._has_news:
            self._has_news = True
            self._arm(self._last + TOGETHER_SECONDS)
        return None

    async def last(self) -> None:
        """Send what has not been sent, at the end."""
        if self._sending is not None:
            await self._sending
        if self._is_wanted and self._has_news:
            await self._send(self._unsent())

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._due)

    def _due(self) -> None:
        """Send what has come, or a sign of life, or look again later."""
        silent = self._loop.time() - self._last
        if self._sending is not None or not (self._has_news or silent >= self._heartbeat):
            self._arm(self._loop.time() + max(0.001, min(self._heartbeat, self._heartbeat - silent)))
            return
        self._sending = self._loop.create_task(self._send_now())
        self._sending.add_done_callback(self._sent)
        self._arm(self._loop.time() + self._heartbeat)

    async def _send_now(self) -> None:
        self._last = self._loop.time()
        await self._send(self._unsent() if self._has_news else None)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None

    async def _send(self, text: str | None) -> None:
        self._has_news = False
        self._count += 1
        await self._context.progress(self._count, message=text)
