"""Changing: compares, keeps and pushes a file as one step, in the one process that owns the game.

A change is data, so that a process that shares the game can send it to the owner: two processes that each
held a lock of their own would overwrite each other. For every change the order is: lock the file, read it,
compare, keep what it holds if that is not known yet, keep what is about to be written, push. If the process
dies at any point, what was answered is current or kept.

Lock order: a move locks its two files in the order of their names; nothing else takes two locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from msgspec import Struct

from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound

from ..errors import BackupFailed, Conflict, Disconnected, InvalidReply, RemoteFailure, ReplyTimeout, add_note
from .edits import Replacement, apply_replacements
from .history import Version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bridgehead.runtime.timing import Clock

    from ..game.remote import Remote
    from .history import History

NOTHING_CHANGED = "Nothing was changed."
UNKNOWN = "It is not known whether the change was made: read the file before trying again."
_ANYTHING = object()


class Write(Struct, tag="write", frozen=True):
    """Put a whole content into a file, if it holds what `if_match` says."""

    server: str
    filename: str
    content: str
    because: str = "write_file"
    if_match: str | None = None


class EditText(Struct, tag="edit", frozen=True):
    """Replace texts in a file: all of them or none."""

    server: str
    filename: str
    replacements: list[Replacement]
    most_bytes: int
    because: str = "edit_file"


class Delete(Struct, tag="delete", frozen=True):
    """Delete a file."""

    server: str
    filename: str
    because: str = "delete_file"
    if_match: str | None = None


class Move(Struct, tag="move", frozen=True):
    """Give a file another name, or another server."""

    server: str
    filename: str
    to_server: str
    to_filename: str
    overwrite: bool = False
    because: str = "move_file"


class Restore(Struct, tag="restore", frozen=True):
    """Bring back a version of a file: the one that is named, or the one before the current content."""

    server: str
    filename: str
    version: str | None = None
    because: str = "restore_file"


Change = Write | EditText | Delete | Move | Restore


class Outcome(Struct, frozen=True, omit_defaults=True):
    """What a change came to."""

    content: str = ""
    """What the file holds now."""
    is_listed_anew: bool = False
    """Whether the list of files changed too."""
    kept_version: str | None = None
    """Where the previous content is kept."""
    restored: str = ""
    """The version that was brought back."""
    warning: str = ""


class Step(Struct, frozen=True):
    """One file that changed, for whoever is told of changes; None stands for a file that is gone."""

    server: str
    filename: str
    digest: str | None
    is_listed_anew: bool


class Changer:
    """Makes changes, one at a time for each file."""

    def __init__(self, remote: Remote, history: History, clock: Clock) -> None:
        self._remote = remote
        self._history = history
        self._clock = clock
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self.on_step: list[Callable[[Step], None]] = []

    async def apply(self, change: Change) -> Outcome:
        """Make a change. It is made as a whole or, where an error says so, not at all."""
        places = [(change.server, change.filename)]
        if isinstance(change, Move):
            places.append((change.to_server, change.to_filename))
        async with self._locked(places):
            match change:
                case Write():
                    return await self._write(change)
                case EditText():
                    return await self._edit(change)
                case Delete():
                    return await self._delete(change)
                case Move():
                    return await self._move(change)
                case Restore():
                    return await self._restore(change)

    @asynccontextmanager
    async def _locked(self, places: list[tuple[str, str]]) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            held = [self._locks.setdefault(place, asyncio.Lock()) for place in sorted(set(places))]
            for lock in held:
                await stack.enter_async_context(lock)
            yield

    async def _write(self, change: Write) -> Outcome:
        previous: Any = _ANYTHING
        if change.if_match is not None or self._history.is_on:
            previous = await self._read(change.server, change.filename)
        if change.if_match is not None:
            check_match(change.server, change.filename, previous, change.if_match)
        return await self._put(change, previous, change.content)

    async def _edit(self, change: EditText) -> Outcome:
        previous = await self._read(change.server, change.filename)
        if previous is None:
            raise NotFound(
                f"{change.filename} is not on {change.server}. {NOTHING_CHANGED}",
                next_step="list_files tells what is.",
            )
        # Looking for the nearest lines takes a while in a long file, and other calls have their turn.
        content = await asyncio.to_thread(apply_replacements, change.filename, previous, change.replacements)
        check_size(content, change.most_bytes)
        return await self._put(change, previous, content)

    async def _delete(self, change: Delete) -> Outcome:
        previous: Any = _ANYTHING
        if change.if_match is not None or self._history.is_on:
            previous = await self._read(change.server, change.filename)
        if change.if_match is not None:
            check_match(change.server, change.filename, previous, change.if_match)
        kept = await self._keep_found(change, previous)
        await self._remove(change.server, change.filename, change.because)
        return Outcome(is_listed_anew=True, kept_version=kept)

    async def _remove(self, server: str, filename: str, because: str) -> None:
        recorded, _ = await self._keep(server, filename, None, because)
        await self._exchange(self._remote.delete(filename, server), recorded)
        self._tell(server, filename, None, is_listed_anew=True)

    async def _move(self, change: Move) -> Outcome:
        if (change.server, change.filename) == (change.to_server, change.to_filename):
            raise InvalidArgument(f"The two names are the same. {NOTHING_CHANGED}")
        content = await self._read(change.server, change.filename)
        if content is None:
            raise NotFound(
                f"{change.filename} is not on {change.server}. {NOTHING_CHANGED}",
                next_step="list_files tells what is.",
            )
        there = await self._read(change.to_server, change.to_filename)
        if there is not None and not change.overwrite:
            raise Conflict(
                f"{change.to_filename} is on {change.to_server} already. {NOTHING_CHANGED}",
                next_step="Choose another name, or set overwrite; what it holds is kept for restore_file.",
            )
        put = Write(change.to_server, change.to_filename, content, change.because)
        outcome = await self._put(put, there, content)
        kept = await self._keep_found(change, content)
        try:
            await self._remove(change.server, change.filename, change.because)
        except BridgeError as error:
            error.message = error.message.replace(NOTHING_CHANGED, "").strip()
            raise add_note(
                error, f"{change.to_filename} was written, and {change.filename} is still there too."
            ) from None
        return Outcome(content, True, kept or outcome.kept_version, warning=outcome.warning)  # noqa: FBT003

    async def _restore(self, change: Restore) -> Outcome:
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

    async def _put(self, change: Change, previous: Any, content: str, restored: str = "") -> Outcome:
        """Keep both contents and push the new one."""
        server, filename = change.server, change.filename
        is_same = previous == content
        kept = None if is_same else await self._keep_found(change, previous)
        recorded, warning = None, ""
        if not is_same:
            recorded, warning = await self._keep(server, filename, content, change.because, restored)
        await self._exchange(self._remote.push(filename, content, server), recorded)
        self._tell(server, filename, content, is_listed_anew=previous is None)
        return Outcome(content, previous is None, kept, restored, warning)

    async def _keep_found(self, change: Change, previous: Any) -> str | None:
        """Keep what a file holds, unless that is its newest version already; return the version's name."""
        if not isinstance(previous, str) or not self._history.is_on:
            return None
        newest = await asyncio.to_thread(self._find_newest, change.server, change.filename)
        if newest is not None and newest.content == previous:
            return newest.name
        found = Version(change.server, change.filename, self._clock.now(), change.because, previous)
        return await asyncio.to_thread(self._history.record, found)

    def _find_newest(self, server: str, filename: str) -> Version | None:
        try:
            return self._history.find_newest(server, filename)
        except (OSError, BridgeError):
            return None  # the folder cannot be had: recording says so, where it matters

    async def _keep(
        self, server: str, filename: str, content: str | None, because: str, restored: str = ""
    ) -> tuple[str | None, str]:
        """Keep what is about to be written (None: a delete), before it is: the game may lose it later.

        What the file held before is safe by now, so a failure here is told and stops nothing.
        """
        if not self._history.is_on:
            return None, ""
        kind = "written" if content is not None else "deleted"
        version = Version(server, filename, self._clock.now(), because, content, kind, restored)  # type: ignore[arg-type]
        try:
            return await asyncio.to_thread(self._history.record, version), ""
        except BackupFailed as failure:
            return None, f"The new content could not be kept on this machine: {failure.__cause__}."

    async def _exchange(self, exchange: Awaitable[None], recorded: str | None) -> None:
        """Make the change itself; where the answer is lost, say that it may have been made all the same."""
        try:
            await exchange
        except (Disconnected, ReplyTimeout, InvalidReply) as error:
            raise add_note(error, UNKNOWN) from None
        except BridgeError as error:
            if recorded is not None:
                await asyncio.to_thread(self._history.discard, recorded)
            raise add_note(error, NOTHING_CHANGED) from None

    async def _read(self, server: str, filename: str) -> str | None:
        """Return what a file holds, or None where it is not there."""
        try:
            return await self._remote.read(filename, server)
        except RemoteFailure as error:
            if error.is_missing_file:
                return None
            raise add_note(error, NOTHING_CHANGED) from None
        except BridgeError as error:
            raise add_note(error, NOTHING_CHANGED) from None

    def _tell(self, server: str, filename: str, content: str | None, *, is_listed_anew: bool) -> None:
        step = Step(server, filename, None if content is None else digest(content), is_listed_anew)
        for told in self.on_step:
            told(step)


def check_match(server: str, filename: str, previous: str | None, wanted: str) -> None:
    """Raise `Conflict` unless a file holds this text, or a text with this SHA-256."""
    if (previous or "") == wanted or digest(previous or "") == wanted.lower():
        return
    raise Conflict(
        f"{filename} on {server} does not hold what if_match says. {NOTHING_CHANGED}",
        next_step="Read it, merge, and write again.",
    )


def check_size(content: str, most: int) -> None:
    """Refuse a content that is too large to be written."""
    size = len(content.encode())
    if size > most:
        raise InvalidArgument(
            f"The content has {size} bytes, and at most {most} may be written.",
            next_step="Split it into several files, or raise FILE_WRITE_MAX_BYTES.",
        )


def digest(content: str) -> str:
    """Return the SHA-256 of a content, in hex."""
    from hashlib import sha256

    return sha256(content.encode()).hexdigest()
