"""Task stores: a file on this machine, or PostgreSQL, where results outlive their machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..directories import DatabaseSettings, StateSettings, open_state

if TYPE_CHECKING:
    from bridgehead.mcp import TaskStore


def open_task_store(settings: StateSettings, part: str) -> TaskStore:
    """Return the store of one part of the product: the database if the settings name one, or a file."""
    if isinstance(settings, DatabaseSettings) and settings.database_url is not None:
        from .postgres import PostgresTaskStore  # lazy: PostgreSQL, 14 ms

        return PostgresTaskStore(settings.database_url)
    from .sqlite import SqliteTaskStore  # lazy: tasks, 4 ms

    return SqliteTaskStore(lambda: open_state(settings, part))
