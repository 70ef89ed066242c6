"""Flights: work that equal calls share, over all replicas, and what came of it, kept for a while.

Whoever asks first does the work and holds a lock meanwhile, which it renews. Others wait for word of the end,
and look from time to time in case that was missed. If the holder dies or gives up, its lock ends and one of
those who wait takes over. Without Redis everybody does the work alone.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from .. import logs
from .scripts import Script, Step, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from .joint import Joint
    from .redis import Redis

LOCK_SECONDS = 3.0
"""How long a lock lasts that is not renewed: so long does the death of its holder go unnoticed."""
LOOK_SECONDS = 0.5
LARGEST = 1024 * 1024
"""Bytes of a result that is kept."""
_PREFIX = "bridgehead:flight:"
_SOMEBODY_ELSES = 0

BEGIN = Script(
    """
local kept = redis.call('GET', KEYS[1])
if kept then return {2, kept} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {1} end
return {redis.call('GET', KEYS[2]) == ARGV[1] and 1 or 0}
""",
    passes="answer[1] == 1",
)
"""Returns what is kept (2), that the work is ours (1), or that somebody else does it (0)."""
RENEW = Script("if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end")
END = Script("""
if ARGV[2] ~= '' then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
redis.call('PUBLISH', ARGV[4], '')
""")

log = logs.logger("stores.flights")


class Flights:
    """The work under way, as one process sees it."""

    def __init__(self, redis: Redis, keep_seconds: float) -> None:
        self._redis = redis
        self._keep = max(1, round(keep_seconds * 1000))
        self.joined = 0
        """How often somebody else's work was used."""

    async def join(
        self, key: bytes, work: Callable[[], Coroutine[Any, Any, bytes]], needs: Joint | None = None
    ) -> tuple[bytes, bool]:
        """Return what came of equal work elsewhere, and True; or of our own, and False.

        Work that gives nothing is not kept, and whoever waited does it again. What the work `needs` of Redis
        is asked for in the round trip that makes the work ours.
        """
        name, token = sha256(key).hexdigest(), secrets.token_hex(8)
        try:
            kept = await self._wait_for_turn(name, token, needs)
        except (StoreUnavailable, StoreError) as problem:
            log.debug("work is not shared with other replicas", problem=str(problem))
            return await work(), False
        if kept is not None:
            self.joined += 1
            return kept, True
        return await self._fly(name, token, work), False

    async def _wait_for_turn(self, name: str, token: str, needs: Joint | None) -> bytes | None:
        """Return what is kept, or nothing once the work is ours to do."""
        begin = Step(BEGIN, _keys(name), [token, _milliseconds(LOCK_SECONDS)])
        ended = asyncio.Event()
        leave: Callable[[], None] | None = None
        try:
            while True:
                ended.clear()
                more = () if needs is None else needs.prepare()
                (state, *kept), *answers = await self._redis.run_steps([begin, *more])
                if needs is not None:
                    needs.receive(answers)  # none where the work is not ours
                if state != _SOMEBODY_ELSES:
                    return kept[0] if kept else None
                if leave is None:
                    leave = self._redis.notices.subscribe(f"flight:{name}", lambda _: ended.set(), ended.set)
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), LOOK_SECONDS)
        finally:
            if leave is not None:
                leave()

    async def _fly(self, name: str, token: str, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        renewing = asyncio.create_task(self._renew(name, token))
        result = b""
        try:
            result = await work()
            return result
        finally:
            renewing.cancel()
            kept = result if len(result) <= LARGEST else b""
            words = [token, kept, self._keep, f"bridgehead:flight:{name}"]
            self._redis.tell_script(END, _keys(name), words)

    async def _renew(self, name: str, token: str) -> None:
        while True:
            await asyncio.sleep(LOCK_SECONDS / 3)
            with suppress(StoreUnavailable, StoreError):
                await self._redis.run(RENEW, _keys(name)[1:], [token, _milliseconds(LOCK_SECONDS)])


def _keys(name: str) -> list[str]:
    return [f"{_PREFIX}{name}", f"{_PREFIX}{name}:lock"]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
