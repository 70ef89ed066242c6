"""Key files: a random secret that the processes of one user on one machine share."""

from __future__ import annotations

import secrets
from pathlib import Path

from filelock import FileLock

from . import durable

_KEY_BYTES = 32
_LOCK_SECONDS = 5.0


def read_or_create(path: Path) -> bytes:
    """Return the key in a file; create it on first use. Blocks. Raises OSError or TimeoutError."""
    # Two processes that start at once must not create two keys.
    with FileLock(path.with_suffix(".lock"), timeout=_LOCK_SECONDS, mode=0o600):
        if not path.exists():
            durable.replace(path, secrets.token_bytes(_KEY_BYTES))
        return durable.read(path)
