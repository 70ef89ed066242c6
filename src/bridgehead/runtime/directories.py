"""Directories: where files of ours live on this machine, private to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import StorageError
from .settings import PATH, Kind, Setting, Settings

if TYPE_CHECKING:
    from pathlib import Path

APPLICATION = "bridgehead"
_PRIVATE = 0o700


class StateSettings(Settings):
    """Where state that outlives a call is kept."""

    state_dir = Setting(
        "BRIDGEHEAD_STATE_DIR",
        PATH,
        None,
        "Where backups, usage totals and other state is kept.",
        shown="the user's state directory",
    )


def user_data(part: str) -> Path:
    """Return the folder for data that belongs to the user; it need not exist."""
    from platformdirs import user_data_path

    return user_data_path(APPLICATION, appauthor=False) / part


def open_state(settings: StateSettings, part: str) -> Path:
    """Return the folder for the state of one part of the product, made if need be and closed to others."""
    return make_private((settings.state_dir or _user_state()) / part)


def _user_state() -> Path:
    from platformdirs import user_state_path

    return user_state_path(APPLICATION, appauthor=False)


def make_private(folder: Path) -> Path:
    """Make a folder that only this user can look into; one that is there stays as its owner made it."""
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    except OSError as failure:
        raise StorageError(
            f"The folder {folder} cannot be made: {failure.strerror}.",
            next_step="Set BRIDGEHEAD_STATE_DIR to a folder that can be written to.",
        ) from failure
    return folder


# --- servers ------------------------------------------------------------------------------------------------


def _postgres_url(text: str) -> str | None:
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError(text)
    return text


POSTGRES_URL = Kind(_postgres_url, "a postgresql:// address", noun="database address")


class DatabaseSettings(Settings):
    """The PostgreSQL database that replicas share."""

    database_url = Setting(
        "BRIDGEHEAD_DATABASE_URL",
        POSTGRES_URL,
        None,
        "PostgreSQL for what must never be lost: records, tokens, usage, audit. "
        "Needs `bridgehead[postgres]`. Add `?statement_cache_size=0` behind a bouncer in transaction mode.",
        secret=True,
        shown="files and SQLite on this machine",
    )
