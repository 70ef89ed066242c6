"""Sync: compare a folder and the game, carry out the plan, and repeat whenever either side changes.

Writes into the game go through `FileWriter`, like an agent's: the process that owns the game compares with
the content that was seen, keeps the previous one, and writes. Contents overwritten on this machine are kept
too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from bridgehead.runtime import durable, logs
from bridgehead.runtime.errors import BridgeError

from ..changes.file_writer import Delete, FileChange, Write
from ..changes.history import Version, digest
from ..errors import Conflict
from ..session import Session
from .folder import Folder
from .planning import Action, Digests, Place, Rules, find_reverted, make_plan, need_consent

log = logs.logger("bitburner.sync")

_PARALLEL = 16
"""Actions carried out at once."""
_MIN_PAUSE_SECONDS = 2.0
_PAUSE_FACTOR = 20
"""Reading the game takes at most 1/20 of the time: the pause is this many times the last read."""
_DEBOUNCE_MS = 50


async def _refuse(_: list[Action], __: int) -> bool:
    return False


class Event(Struct, frozen=True):
    """An action that was carried out or failed, for display."""

    kind: str
    place: Place
    detail: str = ""


class Sync:
    """Syncs one folder with the game."""

    def __init__(
        self,
        session: Session,
        folder: Folder,
        rules: Rules,
        show: Callable[[Event], None],
        *,
        ask: Callable[[list[Action], int], Awaitable[bool]] | None = None,
        copies: tuple[str, ...] = (),
    ) -> None:
        """`ask` confirms many deletes (without it they are held back); `copies` names further servers."""
        self._session = session
        self._ask = ask or _refuse
        """Called with the files to delete and the total number; returns whether to delete them."""
        self._copies = copies
        self._copied: Digests | None = None
        """The folder's files as last copied to the further servers; None if unknown."""
        self._local: Digests = {}
        self._has_run = False
        self._folder = folder
        self._rules = rules
        self._show = show
        self._base: Digests = {}
        """Digests of the last content that both sides agreed on."""
        self._game: dict[Place, str] = {}
        """Contents of the game at its last reading."""
        self._shown: set[tuple[str, Place]] = set()
        # Held for a whole comparison or push; protects `_base` and `_game`, which one pass at a time may
        # change.
        self._pass_lock = asyncio.Lock()
        self._wake = asyncio.Event()

    @property
    def files(self) -> int:
        """How many files both sides agree on."""
        return len(self._base)

    async def plan(self) -> list[Action]:
        """Compare both sides and return the actions; nothing is changed."""
        self._base = await asyncio.to_thread(self._folder.load_base)
        # Read the game before the folder: where case is ignored, its spellings decide the local names.
        contents: dict[Place, str] = {}
        for server in self._folder.servers:
            for file in await self._session.remote.read_all(server):
                contents[server, file.filename] = file.content
        chosen = await asyncio.to_thread(self._folder.choose, contents, self._base)
        self._game = {place: contents[place] for place in chosen}
        local = await asyncio.to_thread(self._folder.scan)
        differences = await self._session.writer.list_differences()
        reverted = find_reverted(differences, is_first=not self._has_run)
        # A file that cannot be synced on one side at the moment is not changed or deleted on the other.
        skipped = self._folder.skipped | self._folder.list_oversized(self._game)
        base, local, game = (
            {place: known for place, known in digests.items() if place not in skipped}
            for digests in (
                self._base,
                local,
                {place: digest(content) for place, content in self._game.items()},
            )
        )
        self._local = local
        return make_plan(base, local, game, self._rules, reverted)

    async def run_once(self) -> list[Action]:
        """Compare both sides, carry out the plan, and return its actions."""
        async with self._pass_lock:
            actions = await self.plan()
            deletes = [action for action in actions if action.kind in ("delete_game", "delete_local")]
            # `files` counts the files that both sides agreed on before.
            if need_consent(len(deletes), self.files) and not await self._ask(deletes, self.files):
                actions = [
                    Action("held", action.place, f"{action.why}; too many deletes at once")
                    if action in deletes
                    else action
                    for action in actions
                ]
            await self.carry_out(actions)
            self._has_run = True
            await self._copy_to_others()
            return actions

    async def _copy_to_others(self) -> None:
        """Copy the folder's files to the further servers where they differ; one way only."""
        if not self._copies:
            return
        local = await asyncio.to_thread(self._folder.scan)
        if local == self._copied:
            return
        for server in self._copies:
            existing = {
                file.filename: digest(file.content) for file in await self._session.remote.read_all(server)
            }
            for (_, filename), known in local.items():
                if existing.get(filename) == known:
                    continue
                content = await asyncio.to_thread(
                    self._folder.read, self._folder.path_of((self._folder.servers[0], filename))
                )
                if content is not None:
                    await self._session.writer.apply(Write(server, filename, content, "sync"))
                    self._show_done("push", (server, filename), "")
        self._copied = local

    async def carry_out(self, actions: list[Action]) -> None:
        """Carry out a plan; a failure is shown and stops only its own file."""
        limit = asyncio.Semaphore(_PARALLEL)

        async def carry_out(action: Action) -> None:
            async with limit:
                try:
                    await self._carry_out_one(action)
                except Conflict:
                    self._show_once(
                        "conflict", action.place, "changed in the game meanwhile; compared again soon"
                    )
                    self._wake.set()
                except (BridgeError, OSError) as failure:
                    self._show_once("failed", action.place, str(failure))

        await asyncio.gather(*(carry_out(action) for action in actions))
        # Stored after each pass: an interrupted sync would otherwise take these changes for new ones.
        if any(action.kind in ("agree", "push", "pull", "delete_game", "delete_local") for action in actions):
            await asyncio.to_thread(self._folder.store_base, self._base)

    async def run(self) -> None:
        """Sync until cancelled; wait while the game is disconnected."""

        # Only for changes by agents. The game announces none of its own; those are found by polling.
        def wake_up(change: FileChange) -> None:
            if change.server in self._folder.servers:
                self._wake.set()

        self._session.connection.on_change.append(self._handle_connection)
        self._session.writer.on_change.append(wake_up)
        # A group, because neither watcher is of use without the other: if one fails, both end.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_folder())
            tasks.create_task(self._watch_game())

    def _handle_connection(self) -> None:
        self._copied = None  # another save may be loaded
        self._wake.set()

    async def _watch_folder(self) -> None:
        from watchfiles import awatch

        root = self._folder.root

        def is_watched(_: object, path: str) -> bool:
            file = Path(path)
            return file.is_relative_to(root) and not self._folder.is_ignored(
                file.relative_to(root).as_posix()
            )

        async for changes in awatch(
            root, debounce=_DEBOUNCE_MS, step=_DEBOUNCE_MS // 2, watch_filter=is_watched
        ):
            if not await self._push_edits({Path(path) for _, path in changes}):
                await self._step()

    async def _push_edits(self, changed: set[Path]) -> bool:
        """Push edited files without reading the whole game; return False if a full comparison is needed.

        Safe because the owner of the game compares with the last common content before it writes.
        """
        if self._rules.mode == "pull" or self._session.connection.link is None:
            return False
        async with self._pass_lock:
            for path in changed:
                place = self._folder.place_of(path)
                content = await asyncio.to_thread(self._folder.read, path)
                if place is None or content is None or self._base.get(place) is None:
                    return False
                if digest(content) == self._base[place]:
                    # An event of our own write, or a save without a change.
                    continue
                try:
                    await self._send(place, content, self._base[place], "")
                    for server in self._copies:
                        await self._session.writer.apply(Write(server, place[1], content, "sync"))
                        self._show_done("push", (server, place[1]), "")
                except (BridgeError, OSError):
                    return False
            await asyncio.to_thread(self._folder.store_base, self._base)
        return True

    async def _watch_game(self) -> None:
        loop = asyncio.get_running_loop()
        pause = _MIN_PAUSE_SECONDS
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()
            began = loop.time()
            await self._step()
            pause = max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * (loop.time() - began))

    async def _step(self) -> None:
        if self._session.connection.link is None:
            return
        try:
            await self.run_once()
        except BridgeError as error:
            log.warn("not in step", problem=error.message)

    async def _carry_out_one(self, action: Action) -> None:
        place, why, folder = action.place, action.why, self._folder
        match action.kind:
            case "agree":
                content = self._game.get(place)
                if content is None:
                    self._base.pop(place, None)
                else:
                    self._base[place] = digest(content)
                # Both sides are equal, so the copy from an earlier conflict is no longer needed.
                beside = folder.find_beside(place)
                if beside is not None:
                    durable.remove(beside)
            case "push":
                await self._push(place, why)
            case "pull":
                content = self._game[place]
                # A file that is new here needs one turn in a thread instead of several; at the first pull all
                # are new.
                if not await asyncio.to_thread(folder.write_new, place, content):
                    await self._keep_local(place)
                    await asyncio.to_thread(folder.write, place, content)
                self._base[place] = digest(content)
                self._show_done("pull", place, why)
            case "conflict":
                await self._keep_both(place)
            case "delete_game":
                # Write only over the content seen here: if the file changed since, the owner refuses, and it
                # is compared again.
                delete = Delete(*place, "sync", if_match=digest(self._game[place]))
                await self._session.writer.apply(delete)
                self._base.pop(place, None)
                self._show_done("delete_game", place, why)
            case "delete_local":
                await self._keep_local(place)
                await asyncio.to_thread(folder.delete, place)
                self._base.pop(place, None)
                self._show_done("delete_local", place, why)
            case _:
                self._show_once(action.kind, place, why)

    async def _push(self, place: Place, why: str) -> None:
        content = await asyncio.to_thread(self._folder.read, self._folder.path_of(place))
        if content is None:
            # Deleted again, or still being written: the next change event pushes it.
            return
        seen = self._game.get(place)
        await self._send(place, content, "" if seen is None else digest(seen), why)

    async def _send(self, place: Place, content: str, match: str, why: str) -> None:
        await self._session.writer.apply(Write(*place, content, "sync", if_match=match))
        self._base[place] = digest(content)
        self._show_done("push", place, why)

    async def _keep_both(self, place: Place) -> None:
        """Write the game's content beside the local file; deleting that copy chooses the local content."""
        copies = ("copied", place)
        if copies in self._shown and self._folder.find_beside(place) is None:
            self._shown.discard(copies)
            await self._push(place, "the conflict was settled here")
            return
        if copies not in self._shown or self._folder.find_beside(place) is None:
            await self._keep_local(place)
            beside = await asyncio.to_thread(self._folder.write_beside, place, self._game[place])
            self._shown.add(copies)
            self._show_once("conflict", place, f"the game's is {beside.name}; delete that file to send yours")

    async def _keep_local(self, place: Place) -> None:
        """Record a local file's content in the history before it is overwritten or deleted."""
        content = await asyncio.to_thread(self._folder.read, self._folder.path_of(place))
        history = self._session.history
        if content is None or not history.is_on:
            return
        if await asyncio.to_thread(history.holds, *place, content):
            return
        version = Version(*place, self._session.now(), "sync, on disk", content)
        await asyncio.to_thread(history.record, version)
        if history.has_excess:
            await asyncio.to_thread(history.drop_oldest)

    def _show_done(self, kind: str, place: Place, detail: str) -> None:
        self._shown = {shown for shown in self._shown if shown[1] != place}
        self._show(Event(kind, place, detail))

    def _show_once(self, kind: str, place: Place, detail: str) -> None:
        """Show a problem of a file only once, until an action on the file succeeds."""
        if kind != "skip" and (kind, place) not in self._shown:
            self._shown.add((kind, place))
            self._show(Event(kind, place, detail))
