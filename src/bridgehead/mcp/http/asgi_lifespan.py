"""ASGI lifespan: tells an application that its server starts, or ends, and waits for it to be ready."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

from .connections import AsgiApplication

log = logging.getLogger("bridgehead.mcp.http")


class StartFailed(Exception):
    """The application says that it cannot start, and why."""


class AsgiLifespan:
    """The application's life beside its requests. One that does not speak of it simply has none."""

    def __init__(self, app: AsgiApplication, state: dict[str, Any]) -> None:
        self._app = app
        self._state = state
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._said: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Wait until the application has started; raises StartFailed where it cannot."""
        self._task = asyncio.get_running_loop().create_task(self._live())
        answer = await self._ask("lifespan.startup")
        if answer.get("type") == "lifespan.startup.failed":
            raise StartFailed(answer.get("message", ""))

    async def stop(self, within: float) -> None:
        """Wait until the application has ended, but not for ever."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ask("lifespan.shutdown"), within)
        if self._task is not None:
            self._task.cancel()

    async def _ask(self, event: str) -> MutableMapping[str, Any]:
        """Tell the application something, and return its answer; nothing, if it does not live any more."""
        if self._task is None or self._task.done():
            return {}
        self._events.put_nowait({"type": event})
        answer = asyncio.ensure_future(self._said.get())
        try:
            await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else {}
        finally:
            answer.cancel()

    async def _live(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._state}
        try:
            await self._app(scope, self._events.get, self._said.put)
        except Exception as failure:  # noqa: BLE001  (an application may know nothing of lifespans)
            log.debug("the application has no lifespan: %r", failure)
