"""Tasks: where they are kept, to outlive a restart and to be known to every process that may be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..directories import ReplicaSettings, StateSettings, open_state
from ..stores import open_redis

if TYPE_CHECKING:
    from bridgehead.mcp import TaskStore


def open_task_store(settings: StateSettings, part: str) -> TaskStore:
    """Return the store of one part of the product: Redis where replicas share one, or a file."""
    redis = open_redis(settings) if isinstance(settings, ReplicaSettings) else None
    if redis is not None:
        from .redis import RedisTaskStore

        return RedisTaskStore(redis)
    from .sqlite import SqliteTaskStore

    return SqliteTaskStore(lambda: open_state(settings, part))
