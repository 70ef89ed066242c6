"""Directories: the places where state lives: private folders, or Redis and PostgreSQL for replicas."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from secrets import token_bytes
from tempfile import TemporaryDirectory
from typing import TypeVar
from urllib.parse import urlsplit

from .errors import StorageError
from .settings import PATH, Kind, Setting, Settings, choice

APPLICATION = "bridgehead"
_PRIVATE = 0o700
_MIN_KEY_LENGTH = 32
REDIS_SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix", "redis+sentinel", "rediss+sentinel")


def _parse_redis_url(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    if scheme not in REDIS_SCHEMES or not mark or not rest:
        raise ValueError(text)
    return text


def _parse_keys(text: str) -> tuple[str, ...]:
    keys = tuple(key for key in (piece.strip() for piece in text.split(",")) if key)
    if any(len(key) < _MIN_KEY_LENGTH for key in keys):
        raise ValueError
    return keys


def _parse_address(text: str) -> str:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.netloc != text or (parts.port or 0) < 0:
        raise ValueError(text)
    return text


ADDRESS = Kind(_parse_address, "a host, or a host and a port such as 10.0.0.7:3001")
REDIS_URL = Kind(
    _parse_redis_url, "an address such as redis://cache:6379/0, rediss://… or redis+sentinel://a,b/name"
)
STATE_KEYS = Kind(
    _parse_keys, f"random keys of {_MIN_KEY_LENGTH} or more characters, separated by commas", "list of keys"
)


class StateSettings(Settings):
    """The folder for state that outlives a call."""

    state_dir = Setting(
        "BRIDGEHEAD_STATE_DIR",
        PATH,
        None,
        "The directory for backups, usage totals and other state.",
        shown="the user's state directory",
    )


class ReplicaSettings(Settings):
    """How replicas share state; without it, each process keeps its own."""

    redis_url = Setting(
        "BRIDGEHEAD_REDIS_URL",
        REDIS_URL,
        None,
        "Redis or Valkey, through which replicas agree on limits, changes, sessions and tasks. Budgets then "
        "need BRIDGEHEAD_DATABASE_URL too.",
    )
    state_keys = Setting(
        "BRIDGEHEAD_STATE_KEYS",
        STATE_KEYS,
        (),
        "Keys that sign state which clients carry between requests. Use the same on all replicas. The "
        "first signs, all verify.",
        secret=True,
        shown="one made at the start",
    )

    limits_without_redis = Setting(
        "BRIDGEHEAD_LIMITS_WITHOUT_REDIS",
        choice("open", "closed"),
        "open",
        "Request limits while Redis is down. `open`: each replica counts for itself. `closed`: "
        "limited tokens are refused.",
    )
    replica_address = Setting(
        "BRIDGEHEAD_REPLICA_ADDRESS",
        ADDRESS,
        None,
        "Where other replicas reach this one: a host, or host:port.",
        shown="this machine's address and a free port",
    )

    def derive_keys(self, purpose: str) -> tuple[bytes, ...]:
        """Derive the keys of one purpose; a random one if none is set.

        Each purpose has its own, so that data sealed for one purpose is invalid for another.
        """
        label = f"bridgehead {purpose}".encode()
        derived = tuple(hmac.digest(key.encode(), label, "sha256") for key in self.state_keys)
        return derived or (token_bytes(_MIN_KEY_LENGTH),)


def user_data(part: str) -> Path:
    """Return the folder for data that belongs to the user; it need not exist."""
    from platformdirs import user_data_path

    return user_data_path(APPLICATION, appauthor=False) / part


def user_config(part: str) -> Path:
    """Return a path below the user's configuration directory; it need not exist."""
    from platformdirs import user_config_path

    return user_config_path(APPLICATION, appauthor=False) / part


def state_folder(settings: StateSettings, part: str) -> Path:
    """Return the folder for the state of one part of the product; it need not exist."""
    if settings.state_dir is not None:
        return settings.state_dir / part
    from platformdirs import user_state_path

    return user_state_path(APPLICATION, appauthor=False) / part


def open_state(settings: StateSettings, part: str) -> Path:
    """Return the folder for the state of one part of the product; create it, private to the user."""
    return make_private(state_folder(settings, part))


S = TypeVar("S", bound=StateSettings)


@contextmanager
def looking(settings: S, part: str) -> Iterator[S]:
    """Give a check its settings. Where a part has no state yet, they name a folder that is removed again."""
    if state_folder(settings, part).exists():
        yield settings
        return
    with TemporaryDirectory(prefix="bridgehead-") as temporary:
        aside = copy(settings)
        aside.values = {**settings.values, StateSettings.state_dir.name: Path(temporary)}
        yield aside


def make_private(folder: Path) -> Path:
    """Create a folder that only this user can read; an existing one keeps its mode."""
    try:
        # `parents=True` would create the parents with the default mode, which everybody can read.
        missing = [folder]
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        for parent in reversed(missing):
            parent.mkdir(mode=_PRIVATE, exist_ok=True)
    except OSError as failure:
        raise StorageError(
            f"The folder {folder} cannot be made: {failure.strerror}.",
            next_step="Set BRIDGEHEAD_STATE_DIR to a folder that can be written to.",
            path=str(folder),
        ) from failure
    return folder


def _parse_postgres_url(text: str) -> str | None:
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError(text)
    return text


POSTGRES_URL = Kind(_parse_postgres_url, "a postgresql:// address", noun="database address")


class DatabaseSettings(Settings):
    """The PostgreSQL database that replicas share."""

    database_url = Setting(
        "BRIDGEHEAD_DATABASE_URL",
        POSTGRES_URL,
        None,
        "PostgreSQL for what must never be lost: records, tokens, usage, budgets, audit, results of tasks. "
        "Needs `bridgehead[postgres]`. Behind a bouncer in transaction mode, add "
        "`?statement_cache_size=0`. `?statement_timeout=2000` limits a statement to 2 seconds instead of 5.",
        secret=True,
        shown="files and SQLite on this machine",
    )
