"""Changes: a change in a bridge of one process is announced to the clients of all processes.

A change that arrives twice does no harm. After a gap in the connection to Redis, clients are notified of
everything they subscribe to, since any of it may have changed. So are the clients of other processes after a
notice that could not be published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bridgehead.mcp import Bridge
from bridgehead.runtime import logs

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

CHANNEL = "changes"
EVERYTHING = ""
"""In place of a method: anything may have changed."""
RETRY_SECONDS = 0.1

log = logs.logger("host.replicas")


class ChangeNotice(Struct, frozen=True, array_like=True):
    """One change, and the process it happened in."""

    node: str
    bridge: str
    method: str
    uri: str | None


class ChangeRelay:
    """Publishes the changes of this process, and notifies its clients of the changes of others."""

    def __init__(self, redis: Redis, node: str) -> None:
        self._redis = redis
        self._node = node
        self._bridges: Mapping[str, Bridge[Any]] = {}
        self._unsubscribe: Callable[[], None] | None = None
        self._catching_up: asyncio.Task[None] | None = None

    def start(self, bridges: Mapping[str, Bridge[Any]]) -> None:
        """Relay the changes of these bridges, by name."""
        self._bridges = bridges
        for name, bridge in bridges.items():
            bridge.changed.relay = partial(self._publish, name)
        self._unsubscribe = self._redis.notices.subscribe(CHANNEL, self._apply, self._apply_everything)

    def stop(self) -> None:
        """Stop relaying."""
        for bridge in self._bridges.values():
            bridge.changed.relay = None
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._catching_up is not None:
            self._catching_up.cancel()

    def _publish(self, bridge: str, change: tuple[str, str | None]) -> None:
        method, uri = change
        notice = msgspec.json.encode(ChangeNotice(self._node, bridge, method, uri))
        self._redis.publish(CHANNEL, notice, self._catch_up_later)

    def _catch_up_later(self) -> None:
        """Publish `EVERYTHING` later: other processes noticed no gap."""
        if self._catching_up is None:
            self._catching_up = asyncio.get_running_loop().create_task(self._catch_up())

    async def _catch_up(self) -> None:
        await asyncio.sleep(RETRY_SECONDS)
        self._catching_up = None
        # If publishing fails again, this is called again.
        for name in self._bridges:
            self._publish(name, (EVERYTHING, None))

    def _apply(self, message: bytes) -> None:
        try:
            notice = msgspec.json.decode(message, type=ChangeNotice)
        except msgspec.MsgspecError:  # sent by another version
            log.warn("a notice of a change cannot be read", bytes=len(message))
            return
        bridge = self._bridges.get(notice.bridge)
        # Redis delivers to the publisher too, whose clients have been notified already.
        if bridge is None or notice.node == self._node:
            return
        if notice.method == EVERYTHING:
            bridge.changed.notify_all()
        else:
            bridge.changed.notify((notice.method, notice.uri))

    def _apply_everything(self) -> None:
        for bridge in self._bridges.values():
            bridge.changed.notify_all()
