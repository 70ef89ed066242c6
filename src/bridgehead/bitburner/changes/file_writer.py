"""FileWriter: compare, keep and push a file as one step, in the process that owns the game.

A change is data. A process that shares the game of another sends its changes to the owner, because two
processes with locks of their own would overwrite each other. Every change locks the file, reads it, compares,
keeps the old content unless it is kept already, keeps the new content, and pushes. Whenever the process dies,
every acknowledged content is in the game or kept.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw, Struct

from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound

from ..errors import BackupFailed, Conflict, Disconnected, InvalidReply, RemoteFailure, ReplyTimeout, add_note
from ..game import wire
from ..game.link import CallFailed
from ..game.remote import decode_result, to_bridge_error
from .differences import Difference
from .edits import Replacement, apply_replacements
from .history import Version, digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bridgehead.runtime.timing import Clock

    from ..game.connection import GameConnection
    from ..game.link import Link
    from ..game.remote import Remote
    from ..game.sharing.relay import Relay
    from .differences import Differences
    from .history import History

CHANGE = "bridgehead/change"
DIFFERENCES = "bridgehead/differences"
CHANGED = "bridgehead/changed"
NOTHING_CHANGED = "Nothing was changed."
UNKNOWN = "It is not known whether the change was made: read the file before trying again."
_OWNER_SECONDS = 30.0
"""Minimum time limit for the owner: a change is several exchanges, and may wait for another change."""

T = TypeVar("T")


class Write(Struct, tag="write", frozen=True):
    """Replace a whole file; with `if_match` only if it holds that text, or a text with that SHA-256."""

    server: str
    filename: str
    content: str
    because: str = "write_file"
    if_match: str | None = None


# `most_bytes` is the field's name on the wire: an owner of an earlier version expects it.
class EditText(Struct, tag="edit", frozen=True, rename={"max_bytes": "most_bytes"}):
    """Replace texts in a file: all of them or none."""

    server: str
    filename: str
    replacements: list[Replacement]
    max_bytes: int
    because: str = "edit_file"


class Delete(Struct, tag="delete", frozen=True):
    """Delete a file."""

    server: str
    filename: str
    because: str = "delete_file"
    if_match: str | None = None


class Move(Struct, tag="move", frozen=True):
    """Move a file to another path or server."""

    server: str
    filename: str
    to_server: str
    to_filename: str
    overwrite: bool = False
    because: str = "move_file"


class Restore(Struct, tag="restore", frozen=True):
    """Write back a kept version; without a name, the one before the current content."""

    server: str
    filename: str
    version: str | None = None
    because: str = "restore_file"


Change = Write | EditText | Delete | Move | Restore


class ChangeResult(Struct, frozen=True, omit_defaults=True):
    """The state of the file after a change."""

    content: str = ""
    is_listed_anew: bool = False
    """Whether the server's list of files changed too."""
    kept_version: str | None = None
    """The version that holds the previous content."""
    restored: str = ""
    """The version that a restore brought back."""
    warning: str = ""


class FileChange(Struct, frozen=True):
    """Announces a changed file to clients and guests; `digest` is None for a deleted file."""

    server: str
    filename: str
    digest: str | None
    is_listed_anew: bool


class FileWriter:
    """Applies changes, one at a time for each file, here or at the owner of a shared game."""

    def __init__(
        self,
        connection: GameConnection,
        remote: Remote,
        history: History,
        differences: Differences,
        relay: Relay,
        *,
        clock: Clock,
        timeout: float,
    ) -> None:
        self._connection = connection
        self._remote = remote
        self._history = history
        self._differences = differences
        self._relay = relay
        self._clock = clock
        self._owner_timeout = max(_OWNER_SECONDS, 4 * timeout)
        # One lock per file, held from the read to the answer of the push. Weak: a lock that nobody holds or
        # waits for is dropped, so the map does not grow with the number of files.
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self.on_change: list[Callable[[FileChange], None]] = []
        """Called for each changed file, whichever process changed it."""

    async def apply(self, change: Change) -> ChangeResult:
        """Make a change completely, or raise an error that says whether anything was changed."""
        link = self._connection.link or await self._connection.require_link()
        if link.is_shared:
            try:
                return await self._ask_owner(link, CHANGE, change, ChangeResult)
            except (Disconnected, ReplyTimeout) as lost:
                raise add_note(lost, UNKNOWN) from None
        places = {(change.server, change.filename)}
        if isinstance(change, Move):
            places.add((change.to_server, change.to_filename))
        async with AsyncExitStack() as locks:
            # Lock order: by server and name. Only a move takes two, and two moves in opposite directions
            # would otherwise wait for each other.
            for place in sorted(places):
                await locks.enter_async_context(self._locks.setdefault(place, asyncio.Lock()))
            match change:
                case Write() | Delete():
                    previous = None
                    is_known = change.if_match is not None or self._history.is_on
                    if is_known:
                        previous = await self._read(change.server, change.filename)
                    if change.if_match is not None:
                        check_match(change.server, change.filename, previous, change.if_match)
                    if isinstance(change, Delete):
                        kept = await self._remove(change, previous)
                        return ChangeResult(is_listed_anew=True, kept_version=kept)
                    # Without backups and if_match the file is not read, so whether it is new stays unknown.
                    is_new = is_known and previous is None
                    return await self._put(change, previous, change.content, is_new=is_new)
                case EditText():
                    previous = await self._read_existing(change)
                    # In a thread: finding the nearest lines of a long file takes a while.
                    content = await asyncio.to_thread(
                        apply_replacements, change.filename, previous, change.replacements
                    )
                    check_size(content, change.max_bytes)
                    return await self._put(change, previous, content)
                case Move():
                    return await self._move(change)
                case Restore():
                    return await self._restore(change)

    def announce(self, change: FileChange, *, is_ours: bool = True) -> None:
        """Announce a changed file to clients, and to the guests if the change was made here."""
        self._differences.record_change((change.server, change.filename), change.digest)
        for listener in self.on_change:
            listener(change)
        if is_ours and self._relay.guests:
            self._relay.broadcast(wire.encode_notification(CHANGED, change))

    async def _move(self, change: Move) -> ChangeResult:
        if (change.server, change.filename) == (change.to_server, change.to_filename):
            raise InvalidArgument(f"The two names are the same. {NOTHING_CHANGED}")
        content = await self._read_existing(change)
        there = await self._read(change.to_server, change.to_filename)
        if there is not None and not change.overwrite:
            raise Conflict(
                f"{change.to_filename} is on {change.to_server} already. {NOTHING_CHANGED}",
                next_step="Choose another name, or set overwrite; what it holds is kept for restore_file.",
            )
        # Write first, then delete: a failure in between leaves two copies, never none.
        target = Write(change.to_server, change.to_filename, content, change.because)
        written = await self._put(target, there, content)
        try:
            kept = await self._remove(change, content)
        except BackupFailed:
            raise
        except BridgeError as error:
            error.message = error.message.replace(NOTHING_CHANGED, "").strip()
            raise add_note(
                error, f"{change.to_filename} was written, and {change.filename} is still there too."
            ) from None
        return ChangeResult(
            content,
            is_listed_anew=True,
            kept_version=kept or written.kept_version,
            warning=written.warning,
        )

    async def _restore(self, change: Restore) -> ChangeResult:
        if not self._history.is_on:
            raise InvalidArgument(
                "Backups are off.", next_step="Unset BITBURNER_BACKUP_DIR to have them kept."
            )
        server, filename = change.server, change.filename
        previous = await self._read(server, filename)
        if change.version is None:
            version = await asyncio.to_thread(self._history.find_undo, server, filename, previous)
        else:
            version = await asyncio.to_thread(self._history.load, server, filename, change.version)
        return await self._put(change, previous, version.content or "", restored=version.name)

    async def _put(
        self,
        change: Change,
        previous: str | None,
        content: str,
        *,
        restored: str = "",
        is_new: bool | None = None,
    ) -> ChangeResult:
        """Keep both contents, push the new one, and announce it."""
        server, filename = change.server, change.filename
        if is_new is None:
            is_new = previous is None
        kept = recorded = None
        warning = ""
        # An equal content adds no version; it is pushed all the same.
        if previous != content:
            kept, recorded, warning = await self._keep(change, previous, content, restored)
        await self._exchange(self._remote.push(filename, content, server), recorded)
        self.announce(FileChange(server, filename, digest(content), is_new))
        return ChangeResult(content, is_new, kept, restored, warning)

    async def _remove(self, change: Change, previous: str | None) -> str | None:
        """Keep the content, delete the file and announce it; return the version that holds the content."""
        server, filename = change.server, change.filename
        kept, recorded, _ = await self._keep(change, previous, None)
        await self._exchange(self._remote.delete(filename, server), recorded)
        self.announce(FileChange(server, filename, None, is_listed_anew=True))
        return kept

    async def _keep(
        self, change: Change, previous: str | None, content: str | None, restored: str = ""
    ) -> tuple[str | None, str | None, str]:
        """Keep the old content, then the new one (None: a delete), before the game is asked.

        Return both versions' names and a warning. If the old content cannot be kept, raise `BackupFailed`.
        By the time the new one is kept the old one is safe, so failing there is only a warning.
        """
        if not self._history.is_on:
            return None, None, ""
        server, filename, because = change.server, change.filename, change.because
        now = self._clock.now()

        def keep() -> tuple[str | None, str | None, str]:
            kept = None
            if previous is not None:
                found = Version(server, filename, now, because, previous)
                kept = self._history.record(found, unless_kept=True)
            new = Version(
                server,
                filename,
                now,
                because,
                content,
                "deleted" if content is None else "written",
                restored,
            )
            try:
                return kept, self._history.record(new), ""
            except BackupFailed as failure:
                return kept, None, f"The new content could not be kept on this machine: {failure.__cause__}."

        return await asyncio.to_thread(keep)

    async def _exchange(self, exchange: Awaitable[None], recorded: str | None) -> None:
        """Ask the game; on failure say whether the change may have been made."""
        try:
            await exchange
        except (Disconnected, ReplyTimeout, InvalidReply) as error:
            # The request was sent, and its answer is lost. The new version stays recorded: it may be the only
            # copy of the game's content.
            raise add_note(error, UNKNOWN) from None
        except BridgeError as error:
            if recorded is not None:
                await asyncio.to_thread(self._history.discard, recorded)
            raise add_note(error, NOTHING_CHANGED) from None

    async def _read(self, server: str, filename: str) -> str | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return await self._remote.read(filename, server)
        except BridgeError as error:
            if isinstance(error, RemoteFailure) and error.is_missing_file:
                return None
            raise add_note(error, NOTHING_CHANGED) from None

    async def _read_existing(self, change: EditText | Move) -> str:
        content = await self._read(change.server, change.filename)
        if content is None:
            raise NotFound(
                f"{change.filename} is not on {change.server}. {NOTHING_CHANGED}",
                next_step="list_files tells what is.",
            )
        return content

    # --- sharing a game: its owner makes the changes and knows the differences ---------------------------

    async def list_differences(self) -> list[Difference]:
        """Return the files that differ from the content last written, and mark them as reported."""
        link = self._connection.link
        if link is not None and link.is_shared:
            return await self._ask_owner(link, DIFFERENCES, {}, list[Difference])
        differences = list(self._differences.found.values())
        if link is not None:
            await self._differences.acknowledge(self._remote)
        return differences

    async def _ask_owner(self, link: Link, method: str, params: object, kind: type[T]) -> T:
        try:
            raw = await link.call(method, msgspec.json.encode(params), self._owner_timeout)
        except CallFailed as failed:
            raise to_bridge_error(method, failed.failure) from None
        return decode_result(method, raw, kind)

    @property
    def operations(self) -> Mapping[str, Callable[[Raw], Awaitable[bytes]]]:
        """Requests that the owner answers for its guests, beside the game's own methods."""

        async def serve_change(params: Raw) -> bytes:
            return msgspec.json.encode(await self.apply(msgspec.json.decode(params, type=Change)))

        async def serve_differences(_: Raw) -> bytes:
            return msgspec.json.encode(await self.list_differences())

        return {CHANGE: serve_change, DIFFERENCES: serve_differences}


def decode_notice(notice: wire.Reply, method: str, kind: type[T]) -> T | None:
    """Return the value of an owner's notification; None for another method or an unknown format."""
    if notice.method != method or not isinstance(notice.params, Raw):
        return None
    try:
        return msgspec.json.decode(notice.params, type=kind)
    except wire.UNREADABLE:
        return None


def check_match(server: str, filename: str, previous: str | None, wanted: str) -> None:
    """Raise `Conflict` unless a file holds this text, or a text with this SHA-256."""
    if (previous or "") == wanted or digest(previous or "") == wanted.lower():
        return
    raise Conflict(
        f"{filename} on {server} does not hold what if_match says. {NOTHING_CHANGED}",
        next_step="Read it, merge, and write again.",
    )


def check_size(content: str, limit: int) -> None:
    """Raise `InvalidArgument` if a content has more bytes than `limit`."""
    size = len(content.encode())
    if size > limit:
        raise InvalidArgument(
            f"The content has {size} bytes, and at most {limit} may be written.",
            next_step="Split it into several files, or raise FILE_WRITE_MAX_BYTES.",
        )
