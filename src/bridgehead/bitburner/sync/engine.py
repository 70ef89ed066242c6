"""Engine: compares the folder and the game, carries out the plan, and goes on as long as it runs.

Everything that goes into the game goes through the same changes as an agent's writes: compared with what was
seen, kept, and made by the one process that owns the game. What is overwritten on this machine is kept too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from bridgehead.runtime import durable, logs
from bridgehead.runtime.errors import BridgeError

from ..changes.changing import Delete, Write, digest
from ..changes.history import Version
from ..errors import Conflict
from .planning import Action, Digests, Place, Rules, make_plan

if TYPE_CHECKING:
    from ..session import Session
    from .folder import Folder

log = logs.logger("bitburner.sync")

_AT_ONCE = 16
_LEAST_SECONDS = 2.0
_SHARE = 20
"""A look at the game may take one part in so many of the time, however large its files are."""
_DEBOUNCE_MS = 50


class Event(Struct, frozen=True):
    """Something that was done or could not be, for whoever watches."""

    kind: str
    place: Place
    detail: str = ""


class Sync:
    """Keeps one folder in step with the game."""

    def __init__(self, session: Session, folder: Folder, rules: Rules, tell: Callable[[Event], None]) -> None:
        self._session = session
        self._folder = folder
        self._rules = rules
        self._tell = tell
        self._base: Digests = {}
        self._game: dict[Place, str] = {}
        self._told: set[tuple[str, Place]] = set()
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()

    @property
    def files(self) -> int:
        """How many files both sides agree on."""
        return len(self._base)

    async def plan(self) -> list[Action]:
        """Compare both sides and return what is to be done; nothing is changed."""
        self._base = await asyncio.to_thread(self._folder.load_base)
        await self._read_game()  # before the folder, whose files have the names that the game gives them
        local = await asyncio.to_thread(self._folder.scan)
        reverted = await self._list_reverted()
        game = {place: digest(content) for place, content in self._game.items()}
        return make_plan(self._base, local, game, self._rules, reverted)

    async def run_once(self) -> list[Action]:
        """Bring both sides into step and return what was decided."""
        async with self._turn:
            actions = await self.plan()
            await self._carry_out(actions)
            return actions

    async def run(self) -> None:
        """Stay in step until cancelled; a game that goes away is waited for."""
        self._session.board.on_change.append(self._wake.set)
        self._session.on_step.append(self._hear)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_folder())
            tasks.create_task(self._watch_game())

    def _hear(self, place: Place) -> None:
        """Look at once when an agent has changed a file of the game."""
        if place[0] in self._folder.servers:
            self._wake.set()

    async def _watch_folder(self) -> None:
        from watchfiles import awatch

        async for changes in awatch(
            self._folder.root, debounce=_DEBOUNCE_MS, step=_DEBOUNCE_MS // 2, watch_filter=self._is_watched
        ):
            if not await self._push_edits({Path(path) for _, path in changes}):
                await self._step()

    async def _push_edits(self, changed: set[Path]) -> bool:
        """Send files that were edited here, without looking at the whole game; false where that is needed.

        Safe because the owner of the game compares with the last common content before it writes.
        """
        if self._rules.mode == "pull" or self._session.board.link is None:
            return False
        async with self._turn:
            for path in changed:
                place = self._folder.place_of(path)
                content = await asyncio.to_thread(self._folder.read, path)
                if place is None or content is None or self._base.get(place) is None:
                    return False
                if digest(content) == self._base[place]:
                    continue  # our own writing, or nothing new
                try:
                    await self._send(place, content, self._base[place], "")
                except (BridgeError, OSError):
                    return False
            await asyncio.to_thread(self._folder.store_base, self._base)
        return True

    def _is_watched(self, _: object, path: str) -> bool:
        relative = Path(path)
        if not relative.is_relative_to(self._folder.root):
            return False
        return not self._folder.is_ignored(relative.relative_to(self._folder.root).as_posix())

    async def _watch_game(self) -> None:
        loop = asyncio.get_running_loop()
        pause = _LEAST_SECONDS
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()
            began = loop.time()
            await self._step()
            pause = max(_LEAST_SECONDS, _SHARE * (loop.time() - began))

    async def _step(self) -> None:
        if self._session.board.link is None:
            return
        try:
            await self.run_once()
        except BridgeError as error:
            log.warn("not in step", problem=error.message)

    # --- the game ------------------------------------------------------------------------------------------

    async def _read_game(self) -> None:
        found: dict[Place, str] = {}
        for server in self._folder.servers:
            for one in await self._session.remote.read_all(server):
                found[server, one.filename] = one.content
        chosen = await asyncio.to_thread(self._folder.choose, found, self._base)
        self._game = {place: found[place] for place in chosen}

    async def _list_reverted(self) -> frozenset[Place]:
        """Return the files that the game has lost with an older save."""
        differences = await self._session.changes.list_differences()
        return frozenset(
            (one.server, one.filename) for one in differences if one.state in ("missing", "older")
        )

    # --- carrying out --------------------------------------------------------------------------------------

    async def _carry_out(self, actions: list[Action]) -> None:
        room = asyncio.Semaphore(_AT_ONCE)

        async def carry(action: Action) -> None:
            async with room:
                try:
                    await self._carry_one(action)
                except Conflict:
                    self._once("conflict", action.place, "changed in the game meanwhile; compared again soon")
                    self._wake.set()
                except (BridgeError, OSError) as failure:
                    self._once("failed", action.place, str(failure))

        await asyncio.gather(*(carry(action) for action in actions))
        if any(action.kind in ("agree", "push", "pull", "delete_game", "delete_local") for action in actions):
            await asyncio.to_thread(self._folder.store_base, self._base)

    async def _carry_one(self, action: Action) -> None:
        place = action.place
        match action.kind:
            case "agree":
                self._agree(place)
            case "push":
                await self._push(place, action.why)
            case "pull":
                await self._pull(place, action.why)
            case "conflict":
                await self._keep_both(place)
            case "delete_game":
                await self._delete_in_game(place, action.why)
            case "delete_local":
                await self._delete_here(place, action.why)
            case _:
                self._once(action.kind, place, action.why)

    def _agree(self, place: Place) -> None:
        content = self._game.get(place)
        if content is None:
            self._base.pop(place, None)
        else:
            self._base[place] = digest(content)
        beside = self._folder.find_beside(place)
        if beside is not None:
            durable.remove(beside)

    async def _push(self, place: Place, why: str) -> None:
        content = await asyncio.to_thread(self._folder.read, self._folder.path_of(place))
        if content is None:
            return  # gone again, or being written: the next event brings it
        seen = self._game.get(place)
        await self._send(place, content, "" if seen is None else digest(seen), why)

    async def _send(self, place: Place, content: str, match: str, why: str) -> None:
        await self._session.changes.apply(Write(*place, content, "sync", if_match=match))
        self._base[place] = digest(content)
        self._done("push", place, why)

    async def _pull(self, place: Place, why: str) -> None:
        content = self._game[place]
        # One turn in a thread for a file that is new here, as all of them are at the first pull.
        if not await asyncio.to_thread(self._folder.write_new, place, content):
            await self._keep_local(place)
            await asyncio.to_thread(self._folder.write, place, content)
        self._base[place] = digest(content)
        self._done("pull", place, why)

    async def _delete_in_game(self, place: Place, why: str) -> None:
        await self._session.changes.apply(Delete(*place, "sync", if_match=digest(self._game[place])))
        self._base.pop(place, None)
        self._done("delete_game", place, why)

    async def _delete_here(self, place: Place, why: str) -> None:
        await self._keep_local(place)
        await asyncio.to_thread(self._folder.delete, place)
        self._base.pop(place, None)
        self._done("delete_local", place, why)

    async def _keep_both(self, place: Place) -> None:
        """Keep both contents; once the copy beside is deleted, what is here counts."""
        copies = ("copied", place)
        if copies in self._told and self._folder.find_beside(place) is None:
            self._told.discard(copies)
            await self._push(place, "the conflict was settled here")
            return
        if copies not in self._told or self._folder.find_beside(place) is None:
            await self._keep_local(place)
            beside = await asyncio.to_thread(self._folder.write_beside, place, self._game[place])
            self._told.add(copies)
            self._once("conflict", place, f"the game's is {beside.name}; delete that file to send yours")

    async def _keep_local(self, place: Place) -> None:
        """Keep what a file on this machine holds, before it is overwritten or deleted."""
        content = await asyncio.to_thread(self._folder.read, self._folder.path_of(place))
        history = self._session.history
        if content is None or not history.is_on:
            return
        newest = await asyncio.to_thread(history.find_newest, *place)
        if newest is not None and newest.content == content:
            return
        known = await asyncio.to_thread(history.list_versions, *place)
        if any(version.content == content for version in known):
            return
        moment = self._session.now()
        version = Version(*place, moment, "sync, on disk", content)
        await asyncio.to_thread(history.record, version)

    # --- telling -------------------------------------------------------------------------------------------

    def _done(self, kind: str, place: Place, detail: str) -> None:
        self._told = {told for told in self._told if told[1] != place}
        self._tell(Event(kind, place, detail))

    def _once(self, kind: str, place: Place, detail: str) -> None:
        """Say the same of a file only once, until something happens to it."""
        if kind != "skip" and (kind, place) not in self._told:
            self._told.add((kind, place))
            self._tell(Event(kind, place, detail))
