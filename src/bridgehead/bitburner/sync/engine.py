"""Sync: compare a folder and the game, carry out the plan, and repeat whenever either side changes.

Writes into the game go through `FileWriter`, like an agent's: the process that owns the game compares with
the content that was seen, keeps the previous one, and writes. Contents overwritten on this machine are kept
too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from bridgehead.runtime import durable, logs
from bridgehead.runtime.errors import BridgeError

from ..changes.file_writer import Delete, FileChange, Write
from ..changes.history import Version, digest
from ..errors import Conflict
from ..session import Session
from .folder import Folder, State
from .planning import Action, Digests, Place, Rules, find_common, find_reverted, make_plan, need_consent

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


class Send(Struct, frozen=True):
    """A content for the game (None: a delete), and the digest of what was seen there; empty if nothing."""

    place: Place
    content: str | None
    seen: str
    why: str = ""

    @property
    def digest(self) -> str:
        """The digest of the content; empty for a delete."""
        return "" if self.content is None else digest(self.content)


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
        self._sent: dict[Place, set[str]] = {}
        """Digests sent since then; stored before they are sent, and forgotten once they are the base."""
        self._past = ""
        """The game of `_base`."""
        self._is_loaded = False
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
        if not self._is_loaded:
            await asyncio.to_thread(self._load)
        past = self._session.connection.past
        if past != self._past:  # what another game had says nothing about this one
            self._base, self._sent, self._past = {}, {}, past
        # Read the game before the folder: where case is ignored, its spellings decide the local names.
        contents: dict[Place, str] = {}
        for server in self._folder.servers:
            for file in await self._session.remote.read_all(server):
                contents[server, file.filename] = file.content
        chosen = await asyncio.to_thread(self._folder.choose, contents, self._base)
        self._game = {place: contents[place] for place in chosen}
        local = await asyncio.to_thread(self._folder.scan)
        differences = await self._session.writer.list_differences(waits=True)
        reverted = find_reverted(differences, is_first=not self._has_run)
        # A file that cannot be synced on one side at the moment is not changed or deleted on the other.
        skipped = self._folder.skipped | self._folder.list_oversized(self._game)
        held = {place: digest(content) for place, content in self._game.items()}
        self._base = find_common(self._base, self._sent, held)
        base, local, game = (
            {place: known for place, known in digests.items() if place not in skipped}
            for digests in (self._base, local, held)
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
                path = self._folder.path_of((self._folder.servers[0], filename))
                content = await asyncio.to_thread(self._folder.read, path)
                if content is not None:
                    await self._copy(server, filename, content)
        self._copied = local

    async def carry_out(self, actions: list[Action]) -> None:
        """Carry out a plan; a failure is shown and stops only its own file."""
        actions = [self._settle(action) for action in actions]
        sends = [send for action in actions if (send := await self._prepare(action)) is not None]
        limit = asyncio.Semaphore(_PARALLEL)

        async def carry_out(action: Action) -> None:
            async with limit:
                try:
                    await self._carry_out_here(action)
                except (BridgeError, OSError) as failure:
                    self._show_once("failed", action.place, str(failure))

        await asyncio.gather(*(carry_out(action) for action in actions), self._send_all(sends))
        if any(action.kind in ("agree", "pull", "delete_local") for action in actions):
            with contextlib.suppress(OSError):  # a full disk: the next start compares everything again
                await self._store()

    async def _send_all(self, sends: list[Send]) -> bool:
        """Send changes to the game; return whether all arrived."""
        if not sends:
            return True
        for send in sends:
            self._sent.setdefault(send.place, set()).add(send.digest)
        limit = asyncio.Semaphore(_PARALLEL)

        async def deliver(send: Send) -> bool:
            async with limit:
                try:
                    await self._deliver(send)
                except Conflict:
                    self._show_once("conflict", send.place, "changed in the game meanwhile; compared again")
                    self._wake.set()
                except (BridgeError, OSError) as failure:
                    self._show_once("failed", send.place, str(failure))
                else:
                    return True
            return False

        try:
            await self._store()  # before the first is sent: see `find_common`
        except OSError as failure:
            for send in sends:
                self._show_once("failed", send.place, f"The sync's state cannot be stored: {failure}")
            return False
        try:
            return all(await asyncio.gather(*(deliver(send) for send in sends)))
        finally:
            with contextlib.suppress(OSError):  # what is stored already says that they were sent
                await self._store()

    async def _deliver(self, send: Send) -> None:
        """Change a file of the game, if it holds what was seen there: otherwise its owner refuses."""
        place, content = send.place, send.content
        if content is None:
            await self._session.writer.apply(Delete(*place, "sync", if_match=send.seen))
            self._base.pop(place, None)
        else:
            await self._session.writer.apply(Write(*place, content, "sync", if_match=send.seen))
            self._base[place] = send.digest
        self._sent.pop(place, None)
        self._show_done("push" if content is not None else "delete_game", place, send.why)

    def _load(self) -> None:
        state, servers = self._folder.load_state(), self._folder.servers
        self._base = {(server, name): known for server, name, known in state.agreed if server in servers}
        for server, name, known in state.sent:
            if server in servers:
                self._sent.setdefault((server, name), set()).add(known)
        self._past = state.game
        self._is_loaded = True

    async def _store(self) -> None:
        agreed = [(*place, known) for place, known in sorted(self._base.items())]
        sent = [(*place, known) for place, digests in sorted(self._sent.items()) for known in sorted(digests)]
        await asyncio.to_thread(self._folder.store_state, State(agreed, self._past, sent))

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
        """Push new and edited files without reading the whole game; return False if that is needed too.

        Safe because the owner of the game compares with the last common content before it writes.
        """
        if self._rules.mode == "pull" or self._session.connection.link is None or not self._is_loaded:
            return False
        async with self._pass_lock:
            sends, is_complete = [], True
            for path in changed:
                place = self._folder.place_of(path)
                content = await asyncio.to_thread(self._folder.read_to_send, path)
                if place is None or content is None:
                    is_complete = False  # deleted, a folder, or not for the game
                    continue
                known = self._base.get(place, "")
                # Equal: an event of our own write, or a save without a change.
                if digest(content) != known:
                    sends.append(Send(place, content, known))
            is_complete = await self._send_all(sends) and is_complete
            for send in sends:
                for server in self._copies if is_complete else ():
                    await self._copy(server, send.place[1], send.content or "")
        return is_complete

    async def _copy(self, server: str, filename: str, content: str) -> None:
        await self._session.writer.apply(Write(server, filename, content, "sync"))
        self._show_done("push", (server, filename), "")

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

    def _settle(self, action: Action) -> Action:
        """Return the push for a conflict that the user has settled by deleting the game's copy."""
        copied = ("copied", action.place)
        is_settled = copied in self._shown and not self._folder.beside(action.place).exists()
        if action.kind != "conflict" or not is_settled:
            return action
        self._shown.discard(copied)
        return Action("push", action.place, "the conflict was settled here")

    async def _prepare(self, action: Action) -> Send | None:
        """Return what an action sends to the game; None if nothing, or no longer."""
        place = action.place
        seen = self._game.get(place)
        path = self._folder.path_of(place)
        if action.kind == "push":
            content = await asyncio.to_thread(self._folder.read_to_send, path)
            if content is not None:
                return Send(place, content, "" if seen is None else digest(seen), action.why)
        if action.kind == "delete_game" and seen is not None:
            is_back = await asyncio.to_thread(os.path.lexists, path)
            return None if is_back else Send(place, None, digest(seen), action.why)
        return None

    async def _carry_out_here(self, action: Action) -> None:
        """Carry out what an action changes on this machine."""
        place, folder = action.place, self._folder
        path = folder.path_of(place)
        match action.kind:
            case "agree":
                content = self._game.get(place)
                if content is None:
                    self._base.pop(place, None)
                else:
                    self._base[place] = digest(content)
                self._sent.pop(place, None)
                # Both sides are equal, so the copy from an earlier conflict is no longer needed.
                durable.remove(folder.beside(place))
            case "pull" | "delete_local":
                content = self._game[place] if action.kind == "pull" else None
                scanned = self._local.get(place)
                if scanned is not None:
                    await self._keep_local(place)
                if not await asyncio.to_thread(folder.replace, path, content, scanned):
                    self._wake.set()  # changed here meanwhile: compared again
                    return
                if content is None:
                    self._base.pop(place, None)
                else:
                    self._base[place] = digest(content)
                self._sent.pop(place, None)
                self._show_done(action.kind, place, action.why)
            case "conflict":
                beside = folder.beside(place)
                await asyncio.to_thread(folder.replace, beside, self._game[place], None)
                self._shown.add(("copied", place))
                self._show_once(
                    "conflict", place, f"the game's is {beside.name}; delete that file to send yours"
                )
            case "held" | "skip":
                self._show_once(action.kind, place, action.why)
            case "push" | "delete_game":
                pass  # see `_prepare`

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
