"""Cool-downs: what one replica leaves alone for a while, and the others with it.

A service that is down, a key that is refused: whoever finds out tells the others, and keeps a note in Redis
for those who come later. It is a convenience: without Redis each replica finds out by itself, and what is
heard late only costs a request.
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
    """What is left alone, and for how long; for no time where it is over."""

    node: str
    name: str
    milliseconds: int


class Cooldowns:
    """What is left alone within one space of names."""

    def __init__(self, redis: Redis, space: str) -> None:
        self._redis = redis
        self._space = space
        self._node = secrets.token_hex(8)
        self._names: Callable[[], Iterable[str]] = tuple
        self._follow: Callable[[str, float], None] = lambda _name, _seconds: None
        self._leave: Callable[[], None] | None = None
        self._reading: asyncio.Task[None] | None = None

    def start(self, names: Callable[[], Iterable[str]], follow: Callable[[str, float], None]) -> None:
        """Hear of others' cool-downs from now on; `names` are those whose notes are read after a gap."""
        self._names, self._follow = names, follow
        self._leave = self._redis.notices.subscribe(f"cooldown:{self._space}", self._hear, self._catch_up)

    def stop(self) -> None:
        """Hear of nothing more."""
        if self._leave is not None:
            self._leave()
        if self._reading is not None:
            self._reading.cancel()

    def begin(self, name: str, seconds: float) -> None:
        """Tell that something is left alone for a while."""
        milliseconds = max(1, round(seconds * 1000))
        self._redis.tell("SET", self._key(name), "1", "PX", milliseconds)
        self._publish(name, milliseconds)

    def end(self, name: str) -> None:
        """Tell that it is used again."""
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
        """Read the notes: others may have told something that was not heard."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        names = tuple(self._names())
        try:
            left = await asyncio.gather(*(self._redis.call("PTTL", self._key(name)) for name in names))
        except (StoreUnavailable, StoreError) as problem:
            _log.debug("the cool-downs of other replicas are not known", problem=str(problem))
            return
        for name, milliseconds in zip(names, left, strict=True):
            if milliseconds > 0:  # what is over is found out by itself
                self._follow(name, milliseconds / 1000)
