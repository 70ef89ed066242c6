"""Single flight: equal concurrent work runs once over all replicas, and its result is kept for a while.

The first caller does the work under a lock that it renews. The others wait for a notice of its end, and poll
in case the notice was lost. If the holder dies, its lock expires and one of the waiting callers takes over.
Without Redis each process does the work itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from .. import logs
from .scripts import Script, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from .redis import Redis

LOCK_SECONDS = 3.0
"""Expiry of a lock that is not renewed: the longest delay after its holder has died."""
POLL_SECONDS = 0.5
"""How often a waiting caller asks again, in case the notice was lost."""
MAX_RESULT_BYTES = 1024 * 1024
"""A larger result is not kept: waiting callers do the work themselves."""
_PREFIX = "bridgehead:flight:"
_HELD_ELSEWHERE = 0

# KEYS: the result, the lock. ARGV: our token, milliseconds of the lock. Returns {2, result} if there is one,
# {1} if the work is ours (also when a pipeline was sent twice: the lock holds our token), {0} otherwise.
BEGIN = Script("""
local kept = redis.call('GET', KEYS[1])
if kept then return {2, kept} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {1} end
return {redis.call('GET', KEYS[2]) == ARGV[1] and 1 or 0}
""")
# Renew only our own lock: after a pause of this process it may have expired and belong to another.
RENEW = Script("if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end")
# Delete only our own lock, for the same reason. The result is stored even if the lock was lost: it is as good
# as another holder's. KEYS: the result, the lock. ARGV: our token, the result (empty: none), its
# milliseconds, the channel.
END = Script("""
if ARGV[2] ~= '' then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
redis.call('PUBLISH', ARGV[4], '')
""")

log = logs.logger("stores.single_flight")


class SingleFlight:
    """Runs identical work once across all replicas."""

    def __init__(self, redis: Redis, keep_seconds: float) -> None:
        self._redis = redis
        self._keep_milliseconds = max(1, round(keep_seconds * 1000))
        self.joined = 0
        """How often another replica's result was used."""

    async def run(self, key: bytes, work: Callable[[], Coroutine[Any, Any, bytes]]) -> tuple[bytes, bool]:
        """Return the result of identical work elsewhere and True, or of our own and False.

        An empty result is not kept: waiting callers do the work themselves.
        """
        name, token = sha256(key).hexdigest(), secrets.token_hex(8)
        try:
            shared = await self._wait_for_turn(name, token)
        except (StoreUnavailable, StoreError) as problem:
            log.debug("work is not shared with other replicas", problem=str(problem))
            return await work(), False
        if shared is not None:
            self.joined += 1
            return shared, True
        renewing = asyncio.create_task(self._renew(name, token))
        result = b""
        try:
            result = await work()
            return result, False
        finally:
            # Also after a failure or a cancellation, with an empty result: the next caller takes over at
            # once.
            renewing.cancel()
            stored = result if len(result) <= MAX_RESULT_BYTES else b""
            words = [token, stored, self._keep_milliseconds, f"bridgehead:flight:{name}"]
            self._redis.tell_script(END, _keys(name), words)

    async def _wait_for_turn(self, name: str, token: str) -> bytes | None:
        """Return the kept result, or None once the work is ours."""
        ended = asyncio.Event()
        unsubscribe: Callable[[], None] | None = None
        try:
            while True:
                ended.clear()
                state, *shared = await self._redis.run(
                    BEGIN, _keys(name), [token, round(LOCK_SECONDS * 1000)]
                )
                if state != _HELD_ELSEWHERE:
                    return shared[0] if shared else None
                # Subscribed only after the first refusal. The subscription's start sets `ended` too
                # (`missed`), so a notice published in between is not waited for in vain.
                if unsubscribe is None:
                    unsubscribe = self._redis.notices.subscribe(
                        f"flight:{name}", lambda _: ended.set(), ended.set
                    )
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), POLL_SECONDS)
        finally:
            if unsubscribe is not None:
                unsubscribe()

    async def _renew(self, name: str, token: str) -> None:
        while True:
            # Two renewals may fail before the lock expires.
            await asyncio.sleep(LOCK_SECONDS / 3)
            with suppress(StoreUnavailable, StoreError):
                await self._redis.run(RENEW, _keys(name)[1:], [token, round(LOCK_SECONDS * 1000)])


def _keys(name: str) -> list[str]:
    return [f"{_PREFIX}{name}", f"{_PREFIX}{name}:lock"]
