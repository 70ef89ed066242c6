"""Revocation: ends unfinished responses with their token, and announces revocations through Redis.

A token whose announcement is signed with a key of the service ends at once. Any other notice only makes a
host look, because others may write to Redis too: the file or the database decides. Without Redis a host
notices a revocation by itself, within a second.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.timing import Clock

from .grants import OAUTH, Grant
from .tokens import WATCH_SECONDS, Token, TokenList, Tokens, TokenStore, log

if TYPE_CHECKING:
    from bridgehead.runtime.stores.redis import Redis

CHANNEL = "revoked"
REVOCATION = "revocation"
"""The purpose of the keys that sign announcements."""


class AnnouncedTokens:
    """A token store that announces revocations to every host. Blocks."""

    def __init__(self, store: TokenStore, open_redis: Callable[[], Redis], keys: Sequence[bytes]) -> None:
        self._store = store
        self._open_redis = open_redis
        self._keys = keys
        self.where = store.where

    def read(self) -> TokenList:
        """Return all tokens."""
        return self._store.read()

    def add(self, token: Token) -> None:
        """Add a token. Not announced: a host that does not know a token reads the store."""
        self._store.add(token)

    def change(self, name: str, change: Callable[[Token], Token]) -> Token:
        """Change a token. Not announced: every host reads the store again within a second."""
        return self._store.change(name, change)

    def revoke(self, name: str) -> Token:
        """Delete a token, announce it, and return it."""
        # The store first: a host that gets the notice reads the store at once and must not find the token
        # there.
        revoked = self._store.revoke(name)

        async def announce() -> None:
            redis = self._open_redis()
            await redis.start()
            try:
                notice = b"%b %b" % (revoked.id.encode(), _sign(self._keys[0], revoked.id.encode()))
                await redis.call("PUBLISH", f"bridgehead:{CHANNEL}", notice)
            finally:
                await redis.close()

        # The revocation holds without the announcement, so a failure here must not fail the command.
        try:
            asyncio.run(announce())
        except BridgeError as problem:
            log.warn("hosts could not be notified; they notice within a second", problem=str(problem))
        return revoked

    def merge_uses(self, uses: Mapping[str, float]) -> dict[str, float]:
        """Store later uses by token id; return the last use of every token that has one."""
        return self._store.merge_uses(uses)


def follow_revocations(redis: Redis, tokens: Tokens, keys: Sequence[bytes]) -> Callable[[], None]:
    """End tokens that any host revokes; return the function that unsubscribes."""

    def handle(notice: bytes) -> None:
        token_id, _, mac = notice.partition(b" ")
        # A revocation is for ever, so nothing is gained by sending a captured notice again.
        if any(hmac.compare_digest(mac, _sign(key, token_id)) for key in keys):
            tokens.end(token_id.decode())
        else:
            tokens.look_soon()

    return redis.notices.subscribe(CHANNEL, handle, tokens.look_soon)


def _sign(key: bytes, token_id: bytes) -> bytes:
    return hmac.digest(key, b"revoked\n" + token_id, "sha256").hex().encode()


class TokenWatch:
    """Cuts off unfinished responses to callers whose token was revoked or has expired."""

    def __init__(self, tokens: Tokens | None, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    async def run(self, revoke: Callable[[], None]) -> None:
        """Call `revoke` after every change of the tokens, and at least every `WATCH_SECONDS`."""
        while True:
            if self._tokens is None:
                await asyncio.sleep(WATCH_SECONDS)
            else:
                await self._tokens.wait()
            revoke()

    def is_token_over(self, token_id: str) -> bool:
        """Tell whether the tasks that a token created must stop."""
        if self._tokens is None or token_id.startswith(OAUTH):
            return False
        return self._tokens.has_ended(token_id, self._clock.now())

    def has_ended(self, grant: Grant) -> bool:
        """Tell whether a grant has expired, or its token was revoked or changed."""
        if grant.expires is not None and grant.expires <= self._clock.now():
            return True
        return bool(grant.token_id) and self._tokens is not None and not self._tokens.has(grant)
