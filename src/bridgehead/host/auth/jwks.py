"""JWKS: the public keys of an authorisation server: fetched, cached and refreshed.

An unknown key id causes a fetch, because the issuer may have rotated its keys, but at most one every
`RETRY_SECONDS`. Stale keys stay in use for a day while they are refreshed in the background: an issuer that
hangs delays no caller whose key is known.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError, Unavailable
from bridgehead.runtime.timing import Clock

from .discovery import FETCH_SECONDS, Fetch, discover, is_secure, read_object

if TYPE_CHECKING:
    from jwt import PyJWK

FRESH_SECONDS = 600.0
USABLE_SECONDS = 86_400.0
RETRY_SECONDS = 30.0
"""Shortest time between two fetches: callers choose key ids, so they could cause one with every request."""
_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}

UNREADABLE = (TypeError, ValueError, OverflowError, RecursionError, AttributeError, KeyError)
"""Raised by keys and claims that no issuer should make, such as an expiry of 400 digits."""

log = logs.logger("host.oauth")


class SigningKeys:
    """The keys of one issuer."""

    def __init__(self, issuer: str, jwks_url: str | None, clock: Clock, fetch_document: Fetch) -> None:
        self._issuer = issuer
        self._url = jwks_url
        self._now = clock.monotonic
        self._fetch = fetch_document
        self._keys: list[dict[str, Any]] = []
        self._parsed: dict[tuple[str, str], PyJWK | None] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        # One fetch at a time: callers with the same unknown key wait here, then find it cached.
        self._fetching = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None

    def _known(self, key_id: str, algorithm: str) -> PyJWK | None:
        """Return a cached key at once; None if it is unknown or older than a day.

        A stale key is returned too, and refreshed in the background.
        """
        age = self._now() - self._fetched_at
        if age > USABLE_SECONDS:
            return None
        if age >= FRESH_SECONDS and self._may_try() and self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        return self._pick(key_id, algorithm)

    async def find(self, key_id: str, algorithm: str) -> PyJWK | None:
        """Return a key, fetching it if it is unknown; None if the issuer has none. Raises Unavailable."""
        if (key := self._known(key_id, algorithm)) is not None:
            return key
        async with self._fetching:
            if self._known(key_id, algorithm) is None and self._may_try():
                await self._renew()
        if not self._keys or self._now() - self._fetched_at > USABLE_SECONDS:
            raise Unavailable("The authorisation server's keys cannot be fetched.", retry_after=RETRY_SECONDS)
        return self._pick(key_id, algorithm)

    def _may_try(self) -> bool:
        return self._now() - self._tried_at >= RETRY_SECONDS

    def _pick(self, key_id: str, algorithm: str) -> PyJWK | None:
        """Return the one key that fits; None if none does, or several: guessing among keys is not safe."""
        header = (key_id, algorithm)
        if header not in self._parsed:
            matches = [key for key in self._keys if _matches(key, key_id, algorithm)]
            if len(matches) != 1:
                return None  # not cached: callers choose key ids, so the cache would grow without limit
            from jwt import PyJWK
            from jwt.exceptions import PyJWTError

            try:
                self._parsed[header] = PyJWK(matches[0], algorithm)
            except (PyJWTError, ValueError, TypeError):
                self._parsed[header] = None
        return self._parsed[header]

    async def _refresh(self) -> None:
        try:
            async with self._fetching:
                if self._may_try():  # another caller may have fetched while this one waited for the lock
                    await self._renew()
        finally:
            self._refreshing = None

    async def _renew(self) -> None:
        self._tried_at = self._now()  # before the fetch: a failed fetch counts too
        try:
            async with asyncio.timeout(3 * FETCH_SECONDS):
                url = self._url or (await discover(self._issuer, self._fetch, ("jwks_uri",))).jwks_uri
                if not is_secure(url):
                    raise Unavailable(f"{url} is neither https nor on this machine.")
                listed = read_object(await self._fetch(url)).get("keys")
            keys = [key for key in listed if _is_usable(key)] if isinstance(listed, list) else []
            if not keys:  # an issuer without keys is broken: those that it had still hold
                raise Unavailable(f"{url} lists no key that can be used.")
        except (BridgeError, msgspec.MsgspecError, TimeoutError, ValueError, RecursionError) as failure:
            log.warn("the keys could not be fetched", issuer=self._issuer, problem=str(failure))
            return
        self._url, self._keys, self._parsed = url, keys, {}
        self._fetched_at = self._now()
        log.info("the keys were fetched", issuer=self._issuer, keys=len(self._keys))


def _is_usable(key: Any) -> bool:
    """Whether a listed key can be read and may verify signatures."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    if not isinstance(key, dict) or key.get("use", "sig") != "sig":
        return False
    try:
        return key.get("kty") in _KEY_TYPES.values() and PyJWK(key) is not None
    except (PyJWTError, *UNREADABLE):
        return False


def _matches(key: dict[str, Any], key_id: str, algorithm: str) -> bool:
    """Tell whether a key may have signed a token with this header; `key_id` is empty if it names none."""
    if key_id and key.get("kid") != key_id:
        return False
    # Type and curve must be those of the algorithm: a token cannot choose how its key is used.
    if key.get("alg", algorithm) != algorithm or key.get("kty") != _KEY_TYPES.get(algorithm[:2]):
        return False
    return algorithm not in _CURVES or key.get("crv") == _CURVES[algorithm]
