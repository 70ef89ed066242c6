"""Watching: detect changed puzzles, inputs and records, and notify subscribers.

Polls the file system, which works on every disk (network drives too) and costs a fraction of a millisecond.
"""

# ruff: noqa: PTH118 - paths are strings here

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from bridgehead.mcp import Bridge
from bridgehead.runtime.errors import BridgeError

from . import layout
from .layout import Folders, Identity, identify

EVERY_SECONDS = 1.0


class FolderState(Struct, frozen=True):
    """The state of the folders at one moment."""

    resources: dict[str, object]
    """Each listed resource, with a value that changes with it."""
    records: dict[str, Identity]
    """The files that boards are computed from."""


async def watch(
    bridge: Bridge[Any], folders: Folders, every: float, read_database: Callable[[], Awaitable[object]]
) -> None:
    """Announce every change in the folders and in the database, until cancelled.

    The first read of the database always counts as a change: a client that subscribed earlier may have missed
    one.
    """
    paths = list_record_paths(folders)
    before: FolderState = read_state(folders, paths)
    database_state: object = None
    while True:
        await asyncio.sleep(every)
        now = read_state(folders, paths)
        try:
            newest = await read_database()
        except BridgeError:  # the next query for a board reports the error
            newest = database_state
        if newest != database_state:
            bridge.changed.resource(layout.LEADERBOARD_URI)
        database_state = newest
        for uri in sorted(before.resources.keys() | now.resources.keys()):
            if before.resources.get(uri) != now.resources.get(uri):
                bridge.changed.resource(uri)
        if before.resources.keys() != now.resources.keys():
            bridge.changed.resources()
        if before.records != now.records:
            bridge.changed.resource(layout.LEADERBOARD_URI)
        before = now


def list_record_paths(folders: Folders) -> list[str]:
    """Return the paths of all files that boards are computed from, existing or not."""
    paths = [folders.aliases]
    for day in layout.DAYS:
        paths += [
            os.path.join(folders.speeds, layout.speeds_name(day)),
            os.path.join(folders.speeds, layout.journal_name(day)),
            os.path.join(folders.attempts, layout.attempts_name(day)),
        ]
    return paths


def read_state(folders: Folders, record_paths: list[str]) -> FolderState:
    """Return the state of everything that can change."""
    resources: dict[str, object] = {
        layout.day_uri(day): files for day, files in layout.list_days(folders.instructions).items()
    }
    inputs = layout.list_inputs(folders.inputs)
    resources |= {layout.input_uri(day): identity for day, identity in inputs.items()}
    records: dict[str, Identity] = {}
    for path in record_paths:
        identity = identify(path)
        if identity is not None:
            records[path] = identity
    return FolderState(resources, records)
