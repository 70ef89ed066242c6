"""Revocation: what is under way ends with its token, and every host that shares a Redis hears of it at once.

Where tokens are, in a file or in a database, they stay; this only says when to look, and whose token is over.
Without Redis a host finds out by itself, within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.timing import Clock

from .grants import Grant
from .tokens import WATCH_SECONDS, Token, TokenList, Tokens, TokenStore, log

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

CHANNEL = "revoked"


class AnnouncedTokens:
    """Tokens as commands change them; what is revoked is told to every host. Blocks."""

    def __init__(self, store: TokenStore, open_redis: Callable[[], Redis]) -> None:
        self._store = store
        self._open_redis = open_redis
        self.where = store.where

    def read(self) -> TokenList:
        """Return what is there."""
        return self._store.read()

    def add(self, token: Token) -> None:
        """Add an entry; a host that does not know a token looks by itself."""
        self._store.add(token)

    def revoke(self, name: str) -> Token:
        """Take an entry out, tell every host, and return it."""
        revoked = self._store.revoke(name)
        try:
            asyncio.run(self._tell(revoked.id))
        except BridgeError as problem:
            log.warn("hosts could not be told; they find out within a second", problem=str(problem))
        return revoked

    async def _tell(self, token_id: str) -> None:
        redis = self._open_redis()
        await redis.start()
        try:
            await redis.call("PUBLISH", f"bridgehead:{CHANNEL}", token_id.encode())
        finally:
            await redis.close()


def follow_revocations(redis: Redis, tokens: Tokens) -> Callable[[], None]:
    """End tokens that are revoked anywhere; returns what stops that."""
    return redis.notices.subscribe(
        CHANNEL, lambda message: tokens.end(message.decode(errors="replace")), tokens.look_soon
    )


class TokenWatch:
    """Ends what is being answered to callers whose tokens were revoked or have expired meanwhile."""

    def __init__(self, tokens: Tokens | None, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    async def run(self, revoke_where: Callable[[Callable[[Grant], bool]], None]) -> None:
        """Look, as long as the host lives."""
        while True:
            if self._tokens is None:
                await asyncio.sleep(WATCH_SECONDS)
            else:
                await self._tokens.wait()
            revoke_where(self._has_ended)

    def is_token_over(self, token_id: str) -> bool:
        """Tell whether what was begun with a token must stop."""
        return self._tokens is not None and self._tokens.has_ended(token_id, self._clock.now())

    def _has_ended(self, grant: Grant) -> bool:
        if grant.expires is not None and grant.expires <= self._clock.now():
            return True
        return bool(grant.token_id) and self._tokens is not None and not self._tokens.has(grant)
