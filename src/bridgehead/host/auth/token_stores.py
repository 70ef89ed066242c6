"""Token stores: the store that the settings choose, for `serve`, `token` and `doctor`."""

from __future__ import annotations

from functools import partial

from bridgehead.runtime import directories
from bridgehead.runtime.errors import BridgeError, StorageError
from bridgehead.runtime.stores import open_own_redis

from ..settings import HostSettings
from .revocation import REVOCATION, AnnouncedTokens
from .tokens import FileTokens, TokenFile, Tokens, TokenStore


def token_store(settings: HostSettings) -> TokenStore:
    """Choose the database if there is one and no file is named, otherwise the file."""
    if settings.database_url is None or settings.tokens_file is not None:
        return TokenFile(settings.tokens_file or directories.open_state(settings, "host") / "tokens.json")
    from .token_database import TokenDatabase  # lazy: PostgreSQL, 14 ms

    return TokenDatabase(settings.database_url)


def announced_tokens(settings: HostSettings) -> TokenStore:
    """Choose the store to change tokens in: with Redis, every host learns of a revocation at once."""
    store = token_store(settings)
    if settings.redis_url is None:
        return store
    keys = settings.derive_keys(REVOCATION)
    return AnnouncedTokens(store, partial(open_own_redis, settings), keys)


def open_tokens(settings: HostSettings) -> Tokens | None:
    """Read the tokens. Even if none is needed, a token decides whose limits and budgets apply.

    Raises BridgeError if callers need a token and none exists; returns None if they need none and the state
    directory cannot be used.
    """
    try:
        store = token_store(settings)
    except StorageError:
        if settings.needs_auth:
            raise
        return None
    tokens: Tokens
    if isinstance(store, TokenFile):
        # Raises for a broken file: at the start that is an error, later the last tokens stay valid.
        if settings.needs_auth:
            store.read()
        tokens = FileTokens(store)
    else:
        from .token_database import SharedTokens  # lazy: PostgreSQL, 14 ms

        tokens = SharedTokens(store)
    tokens.read()
    if settings.needs_auth and not tokens and not tokens.problem and not settings.oauth_issuer:
        raise BridgeError(
            f"Callers of this server (MCP_SERVER_HOST is {settings.host!r}) need a token, and there is none.",
            next_step="Make one with bridgehead token add NAME, or set BRIDGEHEAD_OAUTH_ISSUER. Without "
            "either, the server can only listen on localhost.",
        )
    return tokens
