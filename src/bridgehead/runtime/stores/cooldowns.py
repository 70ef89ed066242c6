"""Cool-downs: pauses in the use of something (a service that is down, a refused key), shared by replicas.

The replica that finds out publishes a notice, and keeps a key in Redis for replicas that start later. This
saves requests and guarantees nothing: without Redis each replica finds out by itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from .. import logs
from . import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from .redis import Redis

_PREFIX = "bridgehead:cooldown:"
_log = logs.logger("stores.cooldowns")


class CooldownNotice(Struct, frozen=True, array_like=True):
    """A cool-down that begins, or ends (0 milliseconds)."""

    node: str
    name: str
    milliseconds: int


class Cooldowns:
    """The cool-downs of one namespace."""

    def __init__(self, redis: Redis, space: str) -> None:
        self._redis = redis
        self._space = space
        self._node = secrets.token_hex(8)
        self._names: Callable[[], Iterable[str]] = tuple
        self._follow: Callable[[str, float], None] = lambda _name, _seconds: None
        self._leave: Callable[[], None] | None = None
        self._reading: asyncio.Task[None] | None = None

    def start(self, names: Callable[[], Iterable[str]], follow: Callable[[str, float], None]) -> None:
        """Call `follow` for cool-downs of other replicas; after a gap, the keys of `names` are read."""
        self._names, self._follow = names, follow
        self._leave = self._redis.notices.subscribe(f"cooldown:{self._space}", self._hear, self._catch_up)

    def stop(self) -> None:
        """Stop listening."""
        if self._leave is not None:
            self._leave()
        if self._reading is not None:
            self._reading.cancel()

    def begin(self, name: str, seconds: float) -> None:
        """Announce a cool-down."""
        milliseconds = max(1, round(seconds * 1000))
        self._redis.tell("SET", self._key(name), "1", "PX", milliseconds)
        self._publish(name, milliseconds)

    def end(self, name: str) -> None:
        """Announce the end of a cool-down."""
        self._redis.tell("DEL", self._key(name))
        self._publish(name, 0)

    def _publish(self, name: str, milliseconds: int) -> None:
        notice = msgspec.json.encode(CooldownNotice(self._node, name, milliseconds))
        self._redis.publish(f"cooldown:{self._space}", notice)

    def _key(self, name: str) -> str:
        return f"{_PREFIX}{self._space}:{name}"

    def _hear(self, message: bytes) -> None:
        notice = msgspec.json.decode(message, type=CooldownNotice)
        if notice.node != self._node:
            self._follow(notice.name, notice.milliseconds / 1000)

    def _catch_up(self) -> None:
        """Read the keys: notices may have been missed."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        names = tuple(self._names())
        try:
            left = await asyncio.gather(*(self._redis.call("PTTL", self._key(name)) for name in names))
        except (StoreUnavailable, StoreError) as problem:
            _log.debug("the cool-downs of other replicas are not known", problem=str(problem))
            return
        for name, milliseconds in zip(names, left, strict=True):
            if milliseconds > 0:  # -2: no key, so no cool-down
                self._follow(name, milliseconds / 1000)
