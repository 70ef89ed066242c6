"""Changes: a change in a bridge of one process is announced to the clients of all.

Hearing of a change twice does no harm. After a gap in the connection everything may have changed, and every
client is told that of what it listens to. So is everybody else after a change that could not be told.
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
"""Stands for a method where anything may have changed."""
AGAIN_SECONDS = 0.1

log = logs.logger("host.replicas")


class ChangeNotice(Struct, frozen=True, array_like=True):
    """One change, and where it began."""

    node: str
    bridge: str
    method: str
    uri: str | None


class ChangeRelay:
    """Tells other processes what changes here, and the clients here what changes there."""

    def __init__(self, redis: Redis, node: str) -> None:
        self._redis = redis
        self._node = node
        self._bridges: Mapping[str, Bridge[Any]] = {}
        self._leave: Callable[[], None] | None = None
        self._catching_up: asyncio.Task[None] | None = None

    def start(self, bridges: Mapping[str, Bridge[Any]]) -> None:
        """Relay the changes of these bridges, by name."""
        self._bridges = bridges
        for name, bridge in bridges.items():
            bridge.changed.relay = partial(self._tell, name)
        self._leave = self._redis.notices.subscribe(CHANNEL, self._hear, self._miss)

    def stop(self) -> None:
        """Relay nothing more."""
        for bridge in self._bridges.values():
            bridge.changed.relay = None
        if self._leave is not None:
            self._leave()
        if self._catching_up is not None:
            self._catching_up.cancel()

    def _tell(self, bridge: str, change: tuple[str, str | None]) -> None:
        method, uri = change
        notice = msgspec.json.encode(ChangeNotice(self._node, bridge, method, uri))
        self._redis.publish(CHANNEL, notice, self._make_up_for_it)

    def _make_up_for_it(self) -> None:
        """Tell later that anything may have changed: others saw no gap."""
        if self._catching_up is None:
            self._catching_up = asyncio.get_running_loop().create_task(self._catch_up())

    async def _catch_up(self) -> None:
        await asyncio.sleep(AGAIN_SECONDS)
        self._catching_up = None
        for name in self._bridges:  # where that fails too, it is tried again
            self._tell(name, (EVERYTHING, None))

    def _hear(self, message: bytes) -> None:
        try:
            notice = msgspec.json.decode(message, type=ChangeNotice)
        except msgspec.MsgspecError:  # of another version, or not of ours
            log.warn("a notice of a change cannot be read", bytes=len(message))
            return
        bridge = self._bridges.get(notice.bridge)
        if bridge is None or notice.node == self._node:
            return
        if notice.method == EVERYTHING:
            bridge.changed.hear_everything()
        else:
            bridge.changed.hear((notice.method, notice.uri))

    def _miss(self) -> None:
        for bridge in self._bridges.values():
            bridge.changed.hear_everything()
