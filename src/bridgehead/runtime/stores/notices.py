"""Notices: messages from other processes (Redis pub/sub), over a connection of its own.

Redis keeps no message for a subscriber that is away. So `missed` is called each time a subscription begins,
at first and after every reconnection: messages may have been missed before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from redis.asyncio import Redis as Client
from redis.exceptions import RedisError

from .. import logs
from ..timing import Backoff
from .deadlines import end_tasks, run_within

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub
    from redis.asyncio.connection import ConnectionPool

CONNECT_SECONDS = 1.0
"""Limit of connecting, and of other steps that no call waits for."""
RECONNECT_BACKOFF = Backoff(base=0.05, limit=2.0)
PING_SECONDS = 1.0
"""How long nothing arrives before a ping checks the connection."""
MAX_UNANSWERED_PINGS = 3
"""Pings without an answer before the connection is given up. Counted, not timed: our loop may be busy."""

log = logs.logger("stores.redis")


class Subscription(Struct, frozen=True, eq=False):
    """A subscriber of one channel; both functions are called from the event loop."""

    handle: Callable[[bytes], None]
    missed: Callable[[], None]


class Notices:
    """The subscriptions of this process."""

    def __init__(self, pool: ConnectionPool, prefix: str, draw: Callable[[], float]) -> None:
        self._pool = pool
        self._prefix = prefix
        self._draw = draw
        self._channels: dict[bytes, list[Subscription]] = {}
        self._pubsub: PubSub | None = None
        self._task: asyncio.Task[None] | None = None
        self._changing: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start to listen; a lost connection is reopened."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop listening."""
        tasks = [*self._changing, *([] if self._task is None else [self._task])]
        await end_tasks(tasks)

    def subscribe(
        self, channel: str, handle: Callable[[bytes], None], missed: Callable[[], None] = lambda: None
    ) -> Callable[[], None]:
        """Listen to a channel; call the returned function to stop."""
        name, subscription = (self._prefix + channel).encode(), Subscription(handle, missed)
        self._channels.setdefault(name, []).append(subscription)
        self._change("subscribe", name)

        def unsubscribe() -> None:
            listening = self._channels.get(name, [])
            if subscription in listening:
                listening.remove(subscription)
            if not listening and self._channels.pop(name, None) is not None:
                self._change("unsubscribe", name)

        return unsubscribe

    def _change(self, verb: str, name: bytes) -> None:
        """Subscribe or unsubscribe on the open connection; without one, the next connection does."""
        pubsub = self._pubsub
        if pubsub is None:
            return

        async def change() -> None:
            with suppress(RedisError, OSError):  # `_listen` notices the broken connection as well
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
                    subscribed = set(self._channels)
                    # SUBSCRIBE needs at least one channel: `all` is one that nobody publishes to.
                    await run_within(CONNECT_SECONDS, pubsub.subscribe(f"{self._prefix}all", *subscribed))
                    self._pubsub = pubsub
                    # Channels added while that was under way: `_change` had no connection to use.
                    if late := self._channels.keys() - subscribed:
                        await run_within(CONNECT_SECONDS, pubsub.subscribe(*late))
                    attempt = 0
                    await self._listen(pubsub)
            except (RedisError, OSError) as failure:
                log.debug("not receiving the notices of other replicas", problem=repr(failure))
            finally:
                self._pubsub = None
            await asyncio.sleep(RECONNECT_BACKOFF.delay(attempt, self._draw))
            attempt += 1

    async def _listen(self, pubsub: PubSub) -> None:
        pings = 0
        while True:
            message = await pubsub.get_message(timeout=PING_SECONDS)
            if message is None:
                if pings == MAX_UNANSWERED_PINGS:
                    raise TimeoutError("It no longer answers.")
                pings += 1
                await run_within(CONNECT_SECONDS, pubsub.ping())
                continue
            pings = 0
            for subscription in tuple(self._channels.get(message["channel"] or b"", ())):
                try:
                    if message["type"] == "message":
                        subscription.handle(message["data"])
                    elif message["type"] == "subscribe":
                        subscription.missed()
                except Exception as failure:  # noqa: BLE001 - must not keep the others from their notices
                    log.warn("a notice could not be handled", problem=repr(failure))
