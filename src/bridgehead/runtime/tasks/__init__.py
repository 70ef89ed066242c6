"""Tasks: where they are kept, to outlive a restart and to be known to every process of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..directories import StateSettings, open_state

if TYPE_CHECKING:
    from bridgehead.mcp import TaskStore


def open_task_store(settings: StateSettings, part: str) -> TaskStore:
    """Return the store of one part of the product: a file in the state directory."""
    from .sqlite import SqliteTaskStore

    return SqliteTaskStore(lambda: open_state(settings, part))
