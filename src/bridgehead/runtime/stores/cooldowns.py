"""Cool-downs: pauses in the use of a failing service or a refused key, shared by replicas.

The replica that detects the failure publishes a notice, and sets a key in Redis for replicas that start
later. This saves requests and guarantees nothing: without Redis each replica detects the failure by itself.
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
        self._adopt: Callable[[str, float], None] = lambda _name, _seconds: None
        self._unsubscribe: Callable[[], None] | None = None
        self._reading: asyncio.Task[None] | None = None

    def start(self, names: Callable[[], Iterable[str]], adopt: Callable[[str, float], None]) -> None:
        """Call `adopt` for cool-downs of other replicas; after a gap, read the keys of `names`."""
        self._names, self._adopt = names, adopt
        channel = f"cooldown:{self._space}"
        self._unsubscribe = self._redis.notices.subscribe(channel, self._handle_notice, self._catch_up)

    def stop(self) -> None:
        """Stop listening."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._reading is not None:
            self._reading.cancel()

    def begin(self, name: str, seconds: float) -> None:
        """Announce a cool-down."""
        # The key expires by itself, so that a replica that dies cannot leave a cool-down behind for ever.
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

    def _handle_notice(self, message: bytes) -> None:
        notice = msgspec.json.decode(message, type=CooldownNotice)
        # Redis delivers to the publisher too, which has begun its cool-down already.
        if notice.node != self._node:
            self._adopt(notice.name, notice.milliseconds / 1000)

    def _catch_up(self) -> None:
        """Read the keys: notices may have been missed."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        names = tuple(self._names())
        try:
            remaining = await asyncio.gather(*(self._redis.call("PTTL", self._key(name)) for name in names))
        except (StoreUnavailable, StoreError) as problem:
            _log.debug("the cool-downs of other replicas are not known", problem=str(problem))
            return
        for name, milliseconds in zip(names, remaining, strict=True):
            if milliseconds > 0:  # -2: no key, so no cool-down
                self._adopt(name, milliseconds / 1000)
