"""Watching: detect changed puzzles, inputs and records, and notify subscribers.

Polls the file system, because no other way shows what other machines write on a share. It does so in a
daemon thread: with 10 ms for a `stat`, one look at everything takes 0.8 s, and a share that hangs must hold
up neither a call nor the end of the process. It looks only while a client would hear of a change.
"""

# ruff: noqa: PTH118 - paths are strings here

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from bridgehead.mcp import Bridge
from bridgehead.runtime.errors import BridgeError

from . import layout
from .layout import Folders, Identity, identify

EVERY_SECONDS = 1.0
FIRST_LOOK_SECONDS = 0.5
"""How long a start waits for the first look, so that no client reads before it. A slow share takes longer."""


class FolderState(Struct, frozen=True):
    """The state of the folders at one moment."""

    resources: dict[str, object]
    """Each listed resource, with a value that changes with it."""
    records: dict[str, Identity]
    """The files that boards are computed from."""


async def watch(
    bridge: Bridge[Any],
    folders: Folders,
    every: float,
    read_database: Callable[[], Awaitable[object]],
    first_look: Awaitable[FolderState],
) -> None:
    """Announce every change in the folders and in the database, until cancelled.

    A client that subscribes also hears of what changed while nobody listened, and the first read of the
    database always counts as a change: either may have come after the client read the resource.
    """
    before = await first_look
    database_state: object = None
    while True:
        await asyncio.sleep(every)
        if not bridge.changed.is_awaited:
            continue
        now = await look(folders)
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


async def look(folders: Folders) -> FolderState:
    """Read the state in a daemon thread."""
    loop = asyncio.get_running_loop()
    seen: asyncio.Future[FolderState] = loop.create_future()

    def show(state: FolderState) -> None:
        if not seen.done():  # otherwise the watcher was cancelled
            seen.set_result(state)

    def read() -> None:
        state = read_state(folders, list_record_paths(folders))
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(show, state)

    threading.Thread(target=read, name="aoc watcher", daemon=True).start()
    return await seen


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
