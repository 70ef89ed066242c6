"""Peer authentication: how processes of one user recognize each other on a port that anyone can reach.

A random key is stored in the state directory, readable by the user alone. It is never sent: each side proves
that it knows the key by an HMAC over a nonce of the guest, so a stranger that holds the port learns nothing
that it could replay.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

from bridgehead.runtime import directories, key_files
from bridgehead.runtime.directories import StateSettings
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.timing import Clock

NONCE, TIME, PROOF = "Bridgehead-Nonce", "Bridgehead-Time", "Bridgehead-Proof"
_VALID_SECONDS = 60.0


def load_key(settings: StateSettings) -> bytes:
    """Return this user's key; create it on first use."""
    path = key_path(settings)
    try:
        return key_files.read_or_create(path)
    except (OSError, TimeoutError) as failure:
        raise StorageError(
            f"The key for sharing a game cannot be read or created in {path}: {failure}.",
            next_step="Set BRIDGEHEAD_STATE_DIR to a folder that can be written to.",
            path=str(path),
        ) from failure


def key_path(settings: StateSettings) -> Path:
    """Return the path of the key."""
    return directories.open_state(settings, "bitburner") / "relay.key"


class Prover:
    """Proves that this process knows the key, and checks the proofs of others."""

    def __init__(self, key: bytes, clock: Clock) -> None:
        self._key = key
        self._clock = clock
        self._seen: dict[str, float] = {}

    def make_claim(self) -> dict[str, str]:
        """Return the headers that authenticate a guest."""
        nonce, time = secrets.token_hex(16), f"{self._clock.now():.3f}"
        return {NONCE: nonce, TIME: time, PROOF: self._sign("guest", nonce, time)}

    def verify_claim(self, headers: Mapping[str, str]) -> bool:
        """Return whether a guest knows the key; a claim is valid once, and for a minute."""
        nonce, time = headers.get(NONCE, ""), headers.get(TIME, "")
        proof = self._sign("guest", nonce, time)
        # In constant time, and before anything else of the headers is parsed.
        if not hmac.compare_digest(proof.encode(), headers.get(PROOF, "").encode("utf-8", "replace")):
            return False
        now = self._clock.now()
        # Remember nonces for twice the validity: a guest's clock may be a minute ahead of ours.
        self._seen = {seen: at for seen, at in self._seen.items() if now - at <= 2 * _VALID_SECONDS}
        if nonce in self._seen or abs(now - float(time)) > _VALID_SECONDS:
            return False
        self._seen[nonce] = now
        return True

    def prove_ownership(self, nonce: str) -> str:
        """Return the owner's proof for a guest's nonce."""
        return self._sign("owner", nonce)

    def verify_owner(self, claim: Mapping[str, str], proof: str | None) -> bool:
        """Return whether the process that answered a claim knows the key."""
        expected = self.prove_ownership(claim[NONCE]).encode()
        return hmac.compare_digest(expected, (proof or "").encode("utf-8", "replace"))

    # The first part is the role, so that an owner's proof cannot be sent back as a guest's.
    def _sign(self, *parts: str) -> str:
        message = "|".join(parts).encode("utf-8", "replace")
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()
