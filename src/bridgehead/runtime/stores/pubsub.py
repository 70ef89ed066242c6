"""Pub/sub: what other processes tell this one, over a connection of its own.

Redis forgets a message that nobody was there to hear. So whoever subscribes is told each time that the
subscription begins, at first and after every reconnection: something may have been missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from redis.asyncio import Redis as Client
from redis.exceptions import RedisError

from .. import logs
from ..timing import Backoff
from .connecting import CONNECT_SECONDS, end_tasks, run_within

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub
    from redis.asyncio.connection import ConnectionPool

AGAIN = Backoff(base=0.05, limit=2.0)
PING_SECONDS = 1.0
"""How long nothing arrives before a ping checks whether the connection still works."""
SILENT_SECONDS = 3.0
"""How long nothing arrives, with pings sent, before the connection is given up."""

log = logs.logger("stores.redis")


class Subscription(Struct, frozen=True, eq=False):
    """Somebody who listens to one channel; both functions are called from the event loop."""

    hear: Callable[[bytes], None]
    missed: Callable[[], None]


class Notices:
    """The channels that this process listens to."""

    def __init__(self, pool: ConnectionPool, prefix: str, draw: Callable[[], float]) -> None:
        self._pool = pool
        self._prefix = prefix
        self._draw = draw
        self._channels: dict[bytes, list[Subscription]] = {}
        self._pubsub: PubSub | None = None
        self._task: asyncio.Task[None] | None = None
        self._changing: set[asyncio.Task[None]] = set()
        self._last_heard = 0.0

    def start(self) -> None:
        """Listen, from now on and as often as it takes."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Listen no longer."""
        tasks = [*self._changing, *([] if self._task is None else [self._task])]
        await end_tasks(tasks)

    def subscribe(
        self, channel: str, hear: Callable[[bytes], None], missed: Callable[[], None] = lambda: None
    ) -> Callable[[], None]:
        """Listen to a channel; returns what ends that."""
        name, subscription = (self._prefix + channel).encode(), Subscription(hear, missed)
        self._channels.setdefault(name, []).append(subscription)
        self._change("subscribe", name)

        def leave() -> None:
            listening = self._channels.get(name, [])
            if subscription in listening:
                listening.remove(subscription)
            if not listening and self._channels.pop(name, None) is not None:
                self._change("unsubscribe", name)

        return leave

    def _change(self, verb: str, name: bytes) -> None:
        """Tell Redis what is listened to, where it is there; where it is not, the next connection does."""
        pubsub = self._pubsub
        if pubsub is None:
            return

        async def change() -> None:
            with suppress(RedisError, OSError):  # the task that listens finds out as well
                await getattr(pubsub, verb)(name)

        task = asyncio.get_running_loop().create_task(change())
        self._changing.add(task)
        task.add_done_callback(self._changing.discard)

    # --- the task that owns the connection -----------------------------------------------------------------

    async def _run(self) -> None:
        attempt = 0
        while True:
            try:
                async with Client(connection_pool=self._pool).pubsub() as pubsub:
                    await self._subscribe_to_all(pubsub)
                    attempt = 0
                    await self._listen(pubsub)
            except (RedisError, OSError) as failure:
                log.debug("not receiving the notices of other replicas", problem=repr(failure))
            finally:
                self._pubsub = None
            await asyncio.sleep(AGAIN.delay(attempt, self._draw))
            attempt += 1

    async def _subscribe_to_all(self, pubsub: PubSub) -> None:
        asked = set(self._channels)
        await run_within(CONNECT_SECONDS, pubsub.subscribe(f"{self._prefix}all", *asked))
        self._pubsub = pubsub
        if (
            late := self._channels.keys() - asked
        ):  # who came meanwhile left it to the next connection: this one
            await run_within(CONNECT_SECONDS, pubsub.subscribe(*late))

    async def _listen(self, pubsub: PubSub) -> None:
        self._last_heard = monotonic()
        while True:
            message = await pubsub.get_message(timeout=PING_SECONDS)
            if message is not None:
                self._last_heard = monotonic()
                self._take(message)
            elif monotonic() - self._last_heard > SILENT_SECONDS:
                raise TimeoutError("It no longer answers.")
            else:
                await run_within(CONNECT_SECONDS, pubsub.ping())

    def _take(self, message: dict[str, Any]) -> None:
        for subscription in tuple(self._channels.get(message["channel"] or b"", ())):
            try:
                if message["type"] == "message":
                    subscription.hear(message["data"])
                elif message["type"] == "subscribe":
                    subscription.missed()
            except Exception as failure:  # noqa: BLE001 - one listener must not make the others deaf
                log.warn("a notice could not be handled", problem=repr(failure))
