"""Batches: write several files, all of them or none.

Before the first file is pushed, a journal on this machine stores the old content of each. If one fails, the
written ones are restored. If the game has disconnected by then, or the process dies, the journal stays, and
the owner of the game rolls the batch back when a game connects. A file that someone else has changed since is
not restored.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from bridgehead.runtime import directories, durable, logs
from bridgehead.runtime.errors import BridgeError, StorageError

from ..errors import NOTHING_CHANGED, Disconnected, ReplyTimeout, add_note
from ..game.connection import GameConnection
from ..settings import BitburnerSettings
from .file_writer import UNKNOWN, ChangeResult, Delete, FileWriter, Write, mark_unknown
from .history import digest
from .last_seen import LastSeen

log = logs.logger("bitburner.batches")

BATCH = "bridgehead/batch"
_RETRY_SECONDS = 5.0
"""Pause between two attempts to roll back in a game that is connected but does not answer."""
_SUFFIX = ".json"


class Batch(Struct, frozen=True):
    """Several files of one server, to be written together."""

    writes: list[Write]


class OldFile(Struct, frozen=True):
    """A file of a batch: its old content (None: it did not exist), and the digest of its new content."""

    filename: str
    content: str | None
    new_digest: str


class Rollback(Struct, frozen=True):
    """A batch being written, with the data needed to roll it back."""

    id: str
    game: str
    """The address the game connects to: another game must not get these contents."""
    server: str
    files: list[OldFile]


class Journal:
    """The batches that are not finished, one file each. Blocks: call from a thread."""

    def __init__(self, settings: BitburnerSettings) -> None:
        self._settings = settings
        self._address = settings.shown_url if settings.rpc_url else str(settings.listen)
        self.past = ""

    @property
    def game(self) -> str:
        """The address that the game connects to; another game must not get these contents."""
        return f"{self._address} {self.past}".rstrip()

    @property
    def _folder(self) -> Path:
        return directories.open_state(self._settings, "bitburner/unfinished")

    def store(self, rollback: Rollback) -> None:
        """Store a batch before its first file is written."""
        try:
            durable.replace(self._folder / f"{rollback.id}{_SUFFIX}", msgspec.json.encode(rollback))
        except OSError as failure:
            raise StorageError(
                f"The write cannot be prepared: {failure.strerror or failure}. {NOTHING_CHANGED}",
                next_step="Make room in the state directory, or write the files one at a time.",
            ) from failure

    def remove(self, rollback_id: str) -> None:
        """Forget a batch that is finished or rolled back."""
        durable.remove(self._folder / f"{rollback_id}{_SUFFIX}")

    def holds(self, rollback_id: str) -> bool:
        """Return whether a batch is still unfinished."""
        return (self._folder / f"{rollback_id}{_SUFFIX}").exists()

    def load(self) -> list[Rollback]:
        """Return the unfinished batches of this game."""
        rollbacks = []
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                rollback = msgspec.json.decode(durable.read(path), type=Rollback)
            except (OSError, msgspec.DecodeError, UnicodeDecodeError):
                continue  # finished by another process, or not a batch
            if rollback.game == self.game:
                rollbacks.append(rollback)
        return rollbacks


class BatchWriter:
    """Writes batches through a `FileWriter`, here or at the owner of a shared game."""

    def __init__(
        self, connection: GameConnection, writer: FileWriter, last_seen: LastSeen, journal: Journal
    ) -> None:
        self._connection = connection
        self._writer = writer
        self._last_seen = last_seen
        self._journal = journal
        self.on_unfinished: Callable[[], None] = lambda: None
        """Called when a batch could not be rolled back at once; `take_back_all` does it later."""
        # Serializes attempts to roll back unfinished batches.
        self._turn = asyncio.Lock()

    def use_game(self, past: str) -> None:
        """Keep and take back the batches of this game from now on."""
        self._journal.past = past

    async def write(self, writes: list[Write], agent: str) -> list[ChangeResult]:
        """Write all files, or none; if the outcome is uncertain, the error lists the state of each file."""
        batch = Batch([self._writer.sign(write, agent) for write in writes])
        link = self._connection.link or await self._connection.require_link()
        if link.is_shared:
            try:
                results = await self._writer.ask_owner(link, BATCH, batch, list[ChangeResult])
            except (Disconnected, ReplyTimeout) as lost:
                raise mark_unknown(lost) from None
        else:
            results = await self._write_here(batch.writes)
        for write in writes:
            self._last_seen.record_seen(agent, (write.server, write.filename), digest(write.content))
        return results

    async def serve(self, params: Raw) -> bytes:
        """Write the batch of a guest."""
        batch = msgspec.json.decode(params, type=Batch)
        return msgspec.json.encode(await self._write_here(batch.writes))

    async def _write_here(self, writes: list[Write]) -> list[ChangeResult]:
        writer = self._writer
        async with writer.locked({(write.server, write.filename) for write in writes}):
            # Check everything before the first file is written.
            previous = await asyncio.gather(*(writer.read(write.server, write.filename) for write in writes))
            overwritten = [
                None if content == write.content else await writer.find_overwritten(write, content)
                for write, content in zip(writes, previous, strict=True)
            ]
            files = [
                OldFile(write.filename, content, digest(write.content))
                for write, content in zip(writes, previous, strict=True)
            ]
            rollback = Rollback(secrets.token_hex(8), self._journal.game, writes[0].server, files)
            await asyncio.to_thread(self._journal.store, rollback)
            results: list[ChangeResult] = []
            try:
                for write, old, lost in zip(writes, previous, overwritten, strict=True):
                    results.append(await writer.put(write, old, write.content, overwritten=lost))
            except BridgeError as error:
                raise await self._fail(rollback, len(results), error) from None
            except asyncio.CancelledError:
                self.on_unfinished()
                raise
            await asyncio.to_thread(self._journal.remove, rollback.id)
            return results

    async def _fail(self, rollback: Rollback, written: int, error: BridgeError) -> BridgeError:
        """Roll back the written files, and return the error with the state of the files."""
        failed = rollback.files[written].filename
        is_certain = NOTHING_CHANGED in error.message
        error.message = error.message.replace(NOTHING_CHANGED, "").replace(UNKNOWN, "").strip()
        try:
            await self._take_back(rollback)
        except BridgeError:
            self.on_unfinished()
            states = ["written"] * written + ["not written"] * (len(rollback.files) - written)
            if not is_certain:
                states[written] = "not known"
            pairs = zip(rollback.files, states, strict=True)
            note = (
                f"The files: {', '.join(f'{old.filename} {state}' for old, state in pairs)}. "
                "What was written is taken back as soon as the game answers again."
            )
            error.next_step = (
                "Wait for the game, then write again; connection_status tells whether it is there."
            )
        else:
            note = f"{failed} could not be written, so all files hold what they held before."
        return add_note(error, note)

    async def _take_back(self, rollback: Rollback) -> list[str]:
        """Restore the old content of files; return their names. The caller holds their locks."""
        taken_back = []
        for old in reversed(rollback.files):
            now = await self._writer.read(rollback.server, old.filename)
            # Restore only what the batch has written; later changes by others stay.
            if now is None or now == old.content or digest(now) != old.new_digest:
                await self._writer.forget_write(rollback.server, old.filename, old.new_digest, old.content)
                continue
            if old.content is None:
                change = Delete(rollback.server, old.filename, "write_files, taken back")
                await self._writer.remove(change, now)
            else:
                write = Write(rollback.server, old.filename, old.content, "write_files, taken back")
                await self._writer.put(write, now, old.content)
            taken_back.append(old.filename)
        await asyncio.to_thread(self._journal.remove, rollback.id)
        return sorted(taken_back)

    async def take_back_all(self, tell: Callable[[str], None]) -> None:
        """Roll back unfinished batches until none is left or the game disconnects; for the owner only."""
        async with self._turn:
            while (link := self._connection.link) is not None and not link.is_shared:
                unfinished = await asyncio.to_thread(self._journal.load)
                try:
                    for rollback in unfinished:
                        places = {(rollback.server, old.filename) for old in rollback.files}
                        async with self._writer.locked(places):
                            # The batch may have finished while this waited for its locks.
                            if not await asyncio.to_thread(self._journal.holds, rollback.id):
                                continue
                            names = await self._take_back(rollback)
                        log.warn("unfinished write taken back", files=len(names))
                        if names:
                            tell(describe_taken_back(names))
                except BridgeError as error:
                    log.warn("unfinished write could not be taken back", problem=error.message)
                else:
                    return
                await asyncio.sleep(_RETRY_SECONDS)


def describe_taken_back(names: list[str]) -> str:
    """Tell the agents that an interrupted batch was rolled back."""
    return f"A write_files was interrupted and has been taken back: {', '.join(names)} as before."
