"""Scripts: Lua for Redis, and the errors of stores. Declaring a script needs no client library."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha1

from ..errors import BridgeError, Unavailable


class StoreError(BridgeError):
    """A store rejected a command: a bug here, not a problem of the store."""

    code = "store"


class StoreUnavailable(Unavailable):
    """A store is gone, slow, full or read-only right now."""

    code = "store_unavailable"


class Script:
    """A Lua script; Redis runs it atomically.

    A pipeline is sent once more after a broken connection, so a script that must not count twice carries an
    id of its own.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def digest(self) -> str:
        """SHA-1 of the text, for EVALSHA."""
        return sha1(self.text.encode(), usedforsecurity=False).hexdigest()
