"""Lifespan: the resources of a bridge while it serves (a connection to its far side, a watcher, a pool).

It starts after the first answer or with the first call that needs it, whichever is earlier, so that it never
delays the handshake. It is entered and left in one task of its own. `Lifespans` lets several dispatchers
serve the same running bridge.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol

LifespanFactory = Callable[[], AbstractAsyncContextManager[Any]]


class HasLifespan(Protocol):
    """A bridge. A protocol, because `BridgeBase` imports modules that import this one."""

    lifespan: LifespanFactory | None


class Lifespan:
    """One run of a bridge's lifespan."""

    def __init__(self, factory: LifespanFactory | None) -> None:
        self._factory = factory
        self._task: asyncio.Task[None] | None = None
        self._entered: asyncio.Event
        self._leave: asyncio.Event
        self._failure: BaseException | None = None
        self._failed_at: TracebackType | None = None
        self.ready = factory is None
        """True while `value` can be used without waiting."""
        self.value: Any = None

    def start(self) -> None:
        """Begin to enter; does nothing the second time."""
        if self._factory is not None and self._task is None:
            self._entered, self._leave = asyncio.Event(), asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._run(self._factory))

    async def wait_until_entered(self) -> None:
        """Wait until the lifespan is entered; raise the exception that ended it."""
        if self.ready:
            return
        self.start()
        await self._entered.wait()
        if self._failure is not None:
            # With the original traceback each time, or it would grow with every call that it fails.
            raise self._failure.with_traceback(self._failed_at)

    async def stop(self, within: float) -> None:
        """Leave; after `within` seconds cancel, and wait as long again."""
        if self._task is None:
            return
        self._leave.set()
        done, _ = await asyncio.wait({self._task}, timeout=within)
        if not done:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=within)

    async def _run(self, factory: LifespanFactory) -> None:
        try:
            async with factory() as self.value:
                self.ready = True
                self._entered.set()
                await self._leave.wait()
        except asyncio.CancelledError:
            self._failure = RuntimeError("the bridge's lifespan was ended while it began")
            raise
        except (Exception, BaseExceptionGroup, SystemExit, GeneratorExit) as error:  # each call reports it
            if self.ready:
                logging.getLogger("bridgehead.mcp").warning(
                    "the bridge's lifespan did not end well", exc_info=error
                )
            self.ready, self._failure, self._failed_at = False, error, error.__traceback__
        finally:
            self._entered.set()


class Lifespans(dict[HasLifespan, Lifespan]):
    """The lifespan of each bridge, made on first use."""

    def __missing__(self, bridge: HasLifespan) -> Lifespan:
        """Make the one lifespan of a bridge."""
        lifespan = self[bridge] = Lifespan(bridge.lifespan)
        return lifespan
