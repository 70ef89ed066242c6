"""Seal: state that travels through the client and cannot be forged on the way.

An `input_required` result carries the state that the server needs to continue when the client returns. The
client can read it (it holds only the client's own answers) but not change it: an HMAC covers it together with
the request it belongs to, whose it is, and its expiry. Each state is accepted once. Give the processes of
one service the same keys; to change a key, add the new one as the second to every process, then
make it the first.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ..errors import INVALID_PARAMS, ProtocolError

_DIGEST_BYTES = 32
_MAX_USED = 100_000
"""Nonces remembered in one process; above this the oldest are forgotten."""


class RequestState(Struct, frozen=True, array_like=True):
    """The answers so far, and the request, expiry and nonce that they are bound to."""

    answers: dict[str, Any]
    request: bytes
    expires: float
    nonce: str


class Seal:
    """Seals request state with its first key, and opens states sealed with any of its keys."""

    def __init__(
        self, keys: bytes | Sequence[bytes] | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        several = (keys,) if isinstance(keys, bytes) else tuple(keys or ())
        self._keys = several or (secrets.token_bytes(_DIGEST_BYTES),)
        self._clock = clock

    def close(self, answers: dict[str, Any], request: bytes, lifetime: float) -> str:
        """Seal the answers for the request they belong to."""
        expires = self._clock() + lifetime
        state = RequestState(answers, request, expires, secrets.token_urlsafe(9))
        payload = msgspec.json.encode(state)
        return base64.urlsafe_b64encode(_mac(self._keys[0], payload) + payload).decode()

    def open(self, sealed: str, request: bytes) -> RequestState:
        """Return the state; raise unless it is ours, for this request, and not expired."""
        try:
            raw = base64.b64decode(sealed.encode(), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise _refuse() from error
        mac, payload = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        if not any(hmac.compare_digest(mac, _mac(key, payload)) for key in self._keys):
            raise _refuse()
        try:
            state = msgspec.json.decode(payload, type=RequestState)
        except msgspec.MsgspecError as error:  # sealed by another version
            raise _refuse() from error
        if state.request != request:
            raise _refuse("it belongs to another request")
        if state.expires < self._clock():
            raise _refuse("it has expired; make the request again from the start")
        return state


class MemoryNonces:
    """The nonces of used states, in one process, so that consent counts once.

    A service of several processes needs a shared store instead.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._used: OrderedDict[str, float] = OrderedDict()

    async def use(self, nonce: str, expires: float) -> bool:
        """Return whether the nonce is new; it stays used until it expires."""
        if nonce in self._used:  # checked first: the loop below may evict this very nonce
            return False
        now = self._clock()
        while self._used and (len(self._used) >= _MAX_USED or next(iter(self._used.values())) < now):
            self._used.popitem(last=False)
        self._used[nonce] = expires
        return True

    async def is_used(self, nonce: str) -> bool:
        """Return whether the nonce was used."""
        return nonce in self._used


def refuse_used() -> ProtocolError:
    """Make the error for a state that was used before."""
    return _refuse("it was answered already; make the request again from the start")


def _mac(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, payload, "sha256")


def fingerprint(owner: str, method: str, subject: str, arguments: Raw) -> bytes:
    """Identify a request and whose it is; the order of its arguments does not matter."""
    ordered = msgspec.json.decode(arguments)
    whole = msgspec.json.encode((owner, method, subject, ordered), order="sorted")
    return hashlib.sha256(whole).digest()


def _refuse(reason: str = "it was not made by this server, or was changed") -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"requestState is refused: {reason}")
