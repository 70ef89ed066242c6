"""JWKS: the public keys of an authorisation server, fetched when needed, kept, and renewed with care.

An unknown key may be a new one, so the keys are fetched again for it, but not more often than every half
minute, whoever asks. Keys that cannot be renewed are used on for a while: the server being away for an hour
should not lock everybody out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError, Unavailable
from bridgehead.runtime.timing import Clock

if TYPE_CHECKING:
    from jwt import PyJWK

    from bridgehead.runtime.http import Proxies

Fetch = Callable[[str], Awaitable[bytes]]

FRESH_SECONDS = 600.0
USABLE_SECONDS = 86_400.0
AGAIN_SECONDS = 30.0
FETCH_SECONDS = 5.0
_MOST_BYTES = 1_000_000
OK = 200

log = logs.logger("host.oauth")


class SigningKeys:
    """The keys of one issuer."""

    def __init__(self, issuer: str, jwks_url: str | None, clock: Clock, fetch_document: Fetch) -> None:
        self._issuer = issuer
        self._url = jwks_url
        self._now = clock.monotonic
        self._fetch = fetch_document
        self._keys: dict[str, PyJWK] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()

    def known(self, key_id: str) -> PyJWK | None:
        """Return a key that is known and fresh enough not to ask."""
        return self._keys.get(key_id) if self._now() - self._fetched_at < FRESH_SECONDS else None

    async def find(self, key_id: str) -> PyJWK | None:
        """Return a key, asking for it if need be; None where there is none. Raises Unavailable."""
        async with self._fetching:
            found = self.known(key_id)
            if found is None and self._now() - self._tried_at >= AGAIN_SECONDS:
                self._tried_at = self._now()
                await self._renew()
        if not self._keys or self._now() - self._fetched_at > USABLE_SECONDS:
            raise Unavailable("The authorisation server's keys cannot be fetched.", retry_after=AGAIN_SECONDS)
        return self._keys.get(key_id)

    async def _renew(self) -> None:
        from jwt import PyJWKSet
        from jwt.exceptions import PyJWTError

        try:
            async with asyncio.timeout(3 * FETCH_SECONDS):
                self._url = self._url or await self._discover()
                keys = PyJWKSet.from_dict(_object(await self._fetch(self._url))).keys
        except (BridgeError, PyJWTError, msgspec.MsgspecError, TimeoutError, ValueError) as failure:
            log.warn("the keys could not be fetched", issuer=self._issuer, problem=str(failure))
            return
        self._keys = {key.key_id: key for key in keys if key.key_id and key.public_key_use in {None, "sig"}}
        self._fetched_at = self._now()
        log.info("the keys were fetched", issuer=self._issuer, keys=len(self._keys))

    async def _discover(self) -> str:
        """Find where the keys are, in one of the two places where issuers say so."""
        parts = urlsplit(self._issuer)
        base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        failure: Exception = Unavailable("The issuer publishes no metadata.")
        for url in (
            f"{base}/.well-known/oauth-authorization-server{path}",
            f"{base}{path}/.well-known/openid-configuration",
        ):
            try:
                found = _object(await self._fetch(url))
            except (BridgeError, msgspec.MsgspecError) as problem:
                failure = problem
                continue
            if found.get("issuer") == self._issuer and isinstance(found.get("jwks_uri"), str):
                return str(found["jwks_uri"])
            failure = Unavailable(f"{url} is not about {self._issuer}, or names no jwks_uri.")
        raise failure


def _object(data: bytes) -> dict[str, Any]:
    return msgspec.json.decode(data, type=dict[str, Any])


async def fetch(url: str, proxies: Proxies) -> bytes:
    """Fetch a small document, through the proxy of the environment where there is one."""
    from bridgehead.runtime import http

    if not url.startswith(("https://", "http://")):  # what an issuer publishes might name a file here
        raise Unavailable(f"{url} is not a web address.")
    accept = (("Accept", "application/json"),)
    try:
        found = await http.fetch(
            url, seconds=FETCH_SECONDS, max_bytes=_MOST_BYTES, headers=accept, proxy=proxies.choose(url)
        )
    except (http.BodyTooLarge, http.ConnectFailed, http.ConnectionBroken, TimeoutError) as failure:
        raise Unavailable(f"{url} cannot be fetched: {str(failure) or 'it took too long'}.") from failure
    if found.status != OK:
        raise Unavailable(f"{url} answered with status {found.status}.")
    return found.body
