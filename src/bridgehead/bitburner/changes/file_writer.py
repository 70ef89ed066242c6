"""FileWriter: compare, keep and push a file as one step, in the process that owns the game.

A change is data. A process that shares the game of another sends its changes to the owner, because two
processes with locks of their own would overwrite each other. Every change locks the file, reads it, compares,
stores the old content unless it is stored already, stores the new content, and pushes. If the process dies at
any point, every acknowledged content is in the game or in the history. A replaced content also survives a
power cut, because it is flushed to disk before the push; a new content is flushed shortly after the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound
from bridgehead.runtime.timing import Clock

from ..errors import (
    NOTHING_CHANGED,
    BackupFailed,
    Conflict,
    Disconnected,
    InvalidReply,
    MissingFile,
    ReplyTimeout,
    add_note,
)
from ..game import timestamps, wire
from ..game.connection import GameConnection
from ..game.link import CallFailed, Link
from ..game.remote import Remote, decode_result, to_bridge_error
from ..game.sharing.relay import Relay
from .differences import Difference, Differences
from .edits import Replacement, apply_replacements
from .history import History, Version, digest
from .last_seen import NO_FILE, Author, LastSeen, Overwritten, describe_loss
from .version_index import Kind

log = logs.logger("bitburner.file_writer")

CHANGE = "bridgehead/change"
DIFFERENCES = "bridgehead/differences"
CHANGED = "bridgehead/changed"
UNKNOWN = "It is not known whether the change was made."
_OWNER_SECONDS = 30.0
"""Minimum time limit for the owner: a change is several exchanges, and may wait for another change."""
_FLUSH_SECONDS = 0.05
"""Delay between a write and the flush of its content, so that consecutive writes share one flush."""

T = TypeVar("T")


class AgentChange(Struct, frozen=True, kw_only=True):
    """The agent behind a change."""

    agent: str = ""
    seen: str | None = None
    """Digest of the content that the agent last read or wrote; None if it did neither."""
    refuses_newer: bool = False
    """Whether the change fails if the file holds something that the agent has not seen."""


class Write(AgentChange, tag="write", frozen=True):
    """Replace a whole file; with `if_match` only if it holds that text, or a text with that SHA-256."""

    server: str
    filename: str
    content: str
    because: str = "write_file"
    if_match: str | None = None


# `most_bytes` is the field's name on the wire: an owner of an earlier version expects it.
class EditText(AgentChange, tag="edit", frozen=True, rename={"max_bytes": "most_bytes"}):
    """Replace texts in a file: all of them or none."""

    server: str
    filename: str
    replacements: list[Replacement]
    max_bytes: int
    because: str = "edit_file"


class Delete(AgentChange, tag="delete", frozen=True):
    """Delete a file."""

    server: str
    filename: str
    because: str = "delete_file"
    if_match: str | None = None


class Move(AgentChange, tag="move", frozen=True):
    """Move a file to another path or server."""

    server: str
    filename: str
    to_server: str
    to_filename: str
    overwrite: bool = False
    because: str = "move_file"
    seen_there: str | None = None
    """Digest of the content that the agent last saw under the new path."""


class Restore(AgentChange, tag="restore", frozen=True):
    """Write back a kept version; without a name, the one before the current content."""

    server: str
    filename: str
    version: str | None = None
    because: str = "restore_file"


Change = Write | EditText | Delete | Move | Restore
C = TypeVar("C", bound=Change)


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
    overwritten: Overwritten | None = None
    """The content it replaced although the agent had not seen it."""
    dropped: list[DroppedVersion] = []
    """The oldest versions, deleted to make room for these."""


class DroppedVersion(Struct, frozen=True):
    """A version that is no longer kept."""

    version: str
    filename: str
    server: str


class FileChange(Struct, frozen=True, omit_defaults=True):
    """Announces a changed file to clients and guests; `digest` is None for a deleted file."""

    server: str
    filename: str
    digest: str | None
    is_listed_anew: bool
    author: Author | None = None
    overwritten: Overwritten | None = None
    """The content it replaced although its author had not seen it."""


class FileWriter:
    """Applies changes, one at a time for each file, here or at the owner of a shared game."""

    def __init__(
        self,
        connection: GameConnection,
        remote: Remote,
        history: History,
        differences: Differences,
        relay: Relay,
        last_seen: LastSeen,
        *,
        clock: Clock,
        timeout: float,
        refuses_newer: bool = False,
    ) -> None:
        self._connection = connection
        self._remote = remote
        self._history = history
        self._differences = differences
        self._relay = relay
        self._last_seen = last_seen
        self._clock = clock
        self._refuses_newer = refuses_newer
        self._owner_timeout = max(_OWNER_SECONDS, 4 * timeout)
        # One lock per file, held from the read to the answer of the push. Weak: a lock that nobody holds or
        # waits for is dropped, so the map does not grow with the number of files.
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._flushing: asyncio.Task[None] | None = None
        self.on_change: list[Callable[[FileChange], None]] = []
        """Called for each changed file, whichever process changed it."""

    async def apply(self, change: Change, agent: str = "") -> ChangeResult:
        """Make a change completely, or raise an error that says whether anything was changed."""
        if agent:
            change = self.sign(change, agent)
        link = self._connection.link or await self._connection.require_link()
        if link.is_shared:
            try:
                result = await self.ask_owner(link, CHANGE, change, ChangeResult)
            except (Disconnected, ReplyTimeout) as lost:
                raise mark_unknown(lost) from None
        else:
            result = await self._change(change)
        if agent:
            new_digest = NO_FILE if isinstance(change, Delete | Move) else digest(result.content)
            self._last_seen.record_seen(agent, (change.server, change.filename), new_digest)
        return result

    def sign(self, change: C, agent: str) -> C:
        """Return a change with its agent and the content of the file that the agent last saw."""
        find_seen = self._last_seen.find_seen
        if isinstance(change, Move):
            change = replace(change, seen_there=find_seen(agent, (change.to_server, change.to_filename)))
        seen = find_seen(agent, (change.server, change.filename))
        return replace(change, agent=agent, seen=seen, refuses_newer=self._refuses_newer)

    async def _change(self, change: Change) -> ChangeResult:
        """Change files of this process's own game, under their locks."""
        places = {(change.server, change.filename)}
        if isinstance(change, Move):
            places.add((change.to_server, change.to_filename))
        async with self.locked(places):
            match change:
                case Write() | Delete():
                    previous = None
                    is_known = self._history.is_on or (change.if_match, change.seen) != (None, None)
                    if is_known:
                        previous = await self.read(change.server, change.filename)
                    overwritten = None
                    if change.if_match is not None:
                        check_match(change.server, change.filename, previous, change.if_match)
                    elif not isinstance(change, Write) or previous != change.content:
                        overwritten = await self.find_overwritten(change, previous)
                    if isinstance(change, Delete):
                        return await self.remove(change, previous, overwritten)
                    # Without backups and if_match the file is not read, so whether it is new stays unknown.
                    is_new = is_known and previous is None
                    return await self.put(
                        change, previous, change.content, is_new=is_new, overwritten=overwritten
                    )
                case EditText():
                    previous = await self._read_existing(change)
                    # In a thread: finding the nearest lines of a long file takes a while.
                    content = await asyncio.to_thread(
                        apply_replacements, change.filename, previous, change.replacements
                    )
                    check_size(content, change.max_bytes)
                    return await self.put(change, previous, content)
                case Move():
                    return await self._move(change)
                case Restore():
                    return await self._restore(change)

    @asynccontextmanager
    async def locked(self, places: Iterable[tuple[str, str]]) -> AsyncIterator[None]:
        """Hold the locks of files."""
        async with AsyncExitStack() as locks:
            # Lock order: by server and name. Two moves in opposite directions would otherwise wait for each
            # other.
            for place in sorted(places):
                await locks.enter_async_context(self._locks.setdefault(place, asyncio.Lock()))
            yield

    async def find_overwritten(self, change: Change, previous: str | None) -> Overwritten | None:
        """Return the content that a change would replace unseen; raise `Conflict` if the agent refuses."""
        if not change.agent or previous is None:
            return None
        server, filename = place = (change.server, change.filename)
        now = digest(previous)
        author = self._last_seen.find_author(place, now)
        if change.seen is not None:
            is_newer = change.seen != now
        else:
            # The agent has never read the file. Report only content newer than the bridge's last write, or by
            # another agent that is still connected: anything else is just an existing file.
            is_newer = (author is not None and author.agent != change.agent) or (
                self._differences.is_unexpected(place, now)
            )
        if not is_newer:
            return None
        difference = None if author is not None else await self._differences.check(server, filename, previous)
        overwritten = Overwritten(
            filename, server, author, is_older=difference is not None and difference.state == "older"
        )
        if change.refuses_newer:
            raise Conflict(
                f"{filename} on {server} does not hold what you last read or wrote: {overwritten.cause} "
                f"since then. {NOTHING_CHANGED}",
                next_step="Read it, merge, and write again.",
            )
        if overwritten.is_older:
            lost = await asyncio.to_thread(self._history.find_last_write, server, filename)
            return replace(overwritten, version=None if lost is None else lost.name)
        return overwritten

    def announce(self, change: FileChange, *, is_ours: bool = True) -> None:
        """Announce a changed file to clients, and to the guests if the change was made here."""
        place = (change.server, change.filename)
        self._differences.record_change(place, change.digest)
        if change.author is not None:
            self._last_seen.record_author(place, change.author)
        lost = change.overwritten
        if lost is not None and lost.author is not None:
            self._last_seen.add_notice(lost.author.agent, describe_loss(lost))
        for listener in self.on_change:
            listener(change)
        if is_ours and self._relay.guests:
            self._relay.broadcast(wire.encode_notification(CHANGED, change))

    async def _move(self, change: Move) -> ChangeResult:
        if (change.server, change.filename) == (change.to_server, change.to_filename):
            raise InvalidArgument(f"The two names are the same. {NOTHING_CHANGED}")
        content = await self._read_existing(change)
        there = await self.read(change.to_server, change.to_filename)
        if there is not None and not change.overwrite:
            raise Conflict(
                f"{change.to_filename} is on {change.to_server} already. {NOTHING_CHANGED}",
                next_step="Choose another name, or set overwrite; what it holds is kept for restore_file.",
            )
        # Write first, then delete: a failure in between leaves two copies, never none.
        target = Write(
            change.to_server,
            change.to_filename,
            content,
            change.because,
            agent=change.agent,
            seen=change.seen_there,
            refuses_newer=change.refuses_newer,
        )
        overwritten = None if there == content else await self.find_overwritten(target, there)
        written = await self.put(target, there, content, overwritten=overwritten)
        try:
            removed = await self.remove(change, content)
        except BridgeError as error:
            is_certain = NOTHING_CHANGED in error.message
            error.message = error.message.replace(NOTHING_CHANGED, "").strip()
            # The game keeps a script that runs, so the copy goes.
            if is_certain and await self._take_copy_back(target, there, content):
                raise add_note(error, NOTHING_CHANGED) from None
            raise add_note(
                error, f"{change.to_filename} was written, and {change.filename} is still there too."
            ) from None
        return ChangeResult(
            content,
            is_listed_anew=True,
            kept_version=removed.kept_version or written.kept_version,
            warning=written.warning,
            overwritten=written.overwritten,
            dropped=[*written.dropped, *removed.dropped],
        )

    async def _take_copy_back(self, copy: Write, before: str | None, content: str) -> bool:
        """Undo the first half of a move; return whether that worked."""
        try:
            if before is None:
                await self.remove(copy, content)
            else:
                await self.put(copy, content, before)
        except BridgeError:
            return False
        return True

    async def _restore(self, change: Restore) -> ChangeResult:
        if not self._history.is_on:
            raise InvalidArgument(
                "Backups are off.", next_step="Unset BITBURNER_BACKUP_DIR to have them kept."
            )
        server, filename = change.server, change.filename
        previous = await self.read(server, filename)
        version = None
        if change.version is not None:
            version = await asyncio.to_thread(self._history.load, server, filename, change.version)
        elif (server, filename) in self._differences.found:
            # The game has lost our last write: restore that, not the version before the game's content.
            version = await asyncio.to_thread(self._history.find_last_write, server, filename)
        if version is None or (change.version is None and version.content == previous):
            version = await asyncio.to_thread(self._history.find_undo, server, filename, previous)
        content = version.content or ""
        overwritten = None
        if previous != content:
            # Never refused: whoever asks for an earlier content means to replace the current one.
            overwritten = await self.find_overwritten(replace(change, refuses_newer=False), previous)
        if overwritten is not None and overwritten.is_older:
            overwritten = None  # an older save's text is what a restore is for
        return await self.put(change, previous, content, restored=version.name, overwritten=overwritten)

    async def put(
        self,
        change: Change,
        previous: str | None,
        content: str,
        *,
        restored: str = "",
        is_new: bool | None = None,
        overwritten: Overwritten | None = None,
    ) -> ChangeResult:
        """Keep both contents, push the new one, and announce it."""
        server, filename = change.server, change.filename
        if is_new is None:
            is_new = previous is None
        kept, recording = None, None
        # An equal content adds no version; it is pushed anyway.
        if previous != content:
            kept = await self._keep_previous(change, previous)
            recording = self._record(change, content, kept, restored)
        warning = await self._exchange(self._remote.push(filename, content, server), recording)
        dropped = await self._drop_oldest() if self._history.has_excess else []
        version = None if kept is None else kept.name
        if overwritten is not None and not overwritten.is_older:
            overwritten = replace(overwritten, version=version)
        author = Author(change.agent, digest(content), change.because, self._clock.now())
        self.announce(FileChange(server, filename, author.digest, is_new, author, overwritten))
        return ChangeResult(content, is_new, version, restored, warning, overwritten, dropped)

    async def remove(
        self, change: Change, previous: str | None, overwritten: Overwritten | None = None
    ) -> ChangeResult:
        """Keep the content, delete the file and announce it."""
        server, filename = change.server, change.filename
        kept = await self._keep_previous(change, previous)
        await self._exchange(self._remote.delete(filename, server), self._record(change, None, kept))
        dropped = await self._drop_oldest() if self._history.has_excess else []
        version = None if kept is None else kept.name
        if overwritten is not None and not overwritten.is_older:
            overwritten = replace(overwritten, version=version)
        self.announce(FileChange(server, filename, None, is_listed_anew=True, overwritten=overwritten))
        return ChangeResult(
            is_listed_anew=True, kept_version=version, overwritten=overwritten, dropped=dropped
        )

    # --- the history: the old content is kept before the game is asked, the new one before the answer ------

    async def _keep_previous(self, change: Change, previous: str | None) -> Version | None:
        """Keep the content that is about to be replaced; return its version, or raise `BackupFailed`."""
        if previous is None or not self._history.is_on:
            return None
        version = Version(change.server, change.filename, self._clock.now(), change.because, previous)
        # An agent mostly replaces what it wrote itself: then no thread is needed before the game is asked.
        name = self._history.recall(version)
        if name is None:
            name = await asyncio.to_thread(self._history.record, version, unless_kept=True)
        elif name in self._history.unflushed:
            await asyncio.to_thread(self._history.flush)
        return replace(version, name=name)

    def _record(
        self, change: Change, content: str | None, previous: Version | None, restored: str = ""
    ) -> asyncio.Task[tuple[str | None, str]] | None:
        """Begin to keep the new content (None: a delete); the task returns its version and a warning.

        The old content is already safe, so a failure here is only a warning. Runs while the game is asked.
        """
        if not self._history.is_on:
            return None
        kind: Kind = "deleted" if content is None else "written"
        now = self._clock.now()
        new = Version(change.server, change.filename, now, change.because, content, kind, restored)

        async def record() -> tuple[str | None, str]:
            # The request leaves at the end of this turn of the loop. A thread that began before would hold it
            # up by 0.1 ms, because both need the interpreter.
            await asyncio.sleep(0)
            try:
                name = await asyncio.to_thread(self._history.record_next, new, previous)
            except BackupFailed as failure:
                return None, f"The new content could not be kept on this machine: {failure.__cause__}."
            if self._flushing is None or self._flushing.done():
                self._flushing = asyncio.create_task(self._flush())
            return name, ""

        return asyncio.create_task(record())

    async def close(self) -> None:
        """Stop flushing; closing the history flushes the rest."""
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.wait({self._flushing})

    async def _flush(self) -> None:
        try:
            while self._history.unflushed:
                await asyncio.sleep(_FLUSH_SECONDS)
                await asyncio.to_thread(self._history.flush)
        except OSError as failure:
            log.warn("versions could not be flushed to the disk", problem=failure.strerror or str(failure))

    async def _exchange(
        self, exchange: Awaitable[None], recording: asyncio.Task[tuple[str | None, str]] | None
    ) -> str:
        """Ask the game while the new content is stored; return a warning if that fails.

        If the game fails, the error says whether the change may have been made.
        """
        try:
            await exchange
        except (Disconnected, ReplyTimeout, InvalidReply) as error:
            # The request was sent, and its answer is lost. The new version stays recorded: it may be the only
            # copy of the game's content.
            raise mark_unknown(error) from None
        except BridgeError as error:
            name = None if recording is None else (await recording)[0]
            if name is not None:
                await asyncio.to_thread(self._history.discard, name)
            raise add_note(error, NOTHING_CHANGED) from None
        return "" if recording is None else (await recording)[1]

    async def forget_write(self, server: str, filename: str, written: str, before: str | None) -> None:
        """Expect what a file held before a write that is taken back and that the game does not hold.

        `written` is the digest of the write. A later change through the bridge stays what is expected.
        """
        place = (server, filename)
        is_last = self._differences.is_unexpected(place, "") and not self._differences.is_unexpected(
            place, written
        )
        if self._history.is_on:  # it also has a write whose outcome is not known
            last = await asyncio.to_thread(self._history.find_last_write, server, filename)
            is_last = last is not None and digest(last.content or "") == written
        if not is_last:
            return
        kind: Kind = "found" if before is None else "written"
        if self._history.is_on:
            version = Version(server, filename, self._clock.now(), "write_files, taken back", before, kind)
            await asyncio.to_thread(self._history.record, version)
        self._differences.forget(place)
        if before is not None:
            self._differences.record_change(place, digest(before))

    async def explain_missing(self, server: str, filename: str) -> str:
        """Return when a file that the game does not have was written here; empty if it was not."""
        if not self._history.is_on:
            return ""
        lost = await asyncio.to_thread(self._history.find_last_write, server, filename)
        if lost is None:
            return ""
        return f"It was written here at {timestamps.format_utc(lost.at)}; restore_file brings it back."

    async def _drop_oldest(self) -> list[DroppedVersion]:
        dropped = await asyncio.to_thread(self._history.drop_oldest)
        return [
            DroppedVersion(entry.name, entry.filename, entry.server.rpartition(":")[2]) for entry in dropped
        ]

    async def read(self, server: str, filename: str) -> str | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return await self._remote.read(filename, server)
        except BridgeError as error:
            if isinstance(error, MissingFile):
                return None
            raise add_note(error, NOTHING_CHANGED) from None

    async def _read_existing(self, change: EditText | Move) -> str:
        content = await self.read(change.server, change.filename)
        if content is None:
            lost = await self.explain_missing(change.server, change.filename)
            raise NotFound(
                f"{change.filename} is not on {change.server}. {NOTHING_CHANGED}",
                next_step=lost or "list_files tells what is.",
            )
        return content

    # --- sharing a game: its owner makes the changes and knows the differences ---------------------------

    async def list_differences(self, *, waits: bool = False) -> list[Difference]:
        """Return the files that differ from the content last written, and mark them as reported.

        With `waits`, a game that has just connected is compared first.
        """
        link = self._connection.link
        if link is not None and link.is_shared:
            return await self.ask_owner(link, DIFFERENCES, {"waits": waits}, list[Difference])
        if waits and link is not None:
            await self._differences.is_checked.wait()
        differences = list(self._differences.found.values())
        if link is not None:
            await self._differences.acknowledge(self._remote)
        return differences

    async def ask_owner(self, link: Link, method: str, params: object, kind: type[T]) -> T:
        """Ask the process that owns the shared game."""
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

        async def serve_differences(params: Raw) -> bytes:
            waits = msgspec.json.decode(params, type=dict[str, bool]).get("waits", False)
            return msgspec.json.encode(await self.list_differences(waits=waits))

        return {CHANGE: serve_change, DIFFERENCES: serve_differences}


def mark_unknown(error: BridgeError) -> BridgeError:
    """Add to an error that the change may have been made anyway, and what to do about it."""
    error.next_step = "Read the file before you try again; connection_status tells whether the game is there."
    return add_note(error, UNKNOWN)


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


def check_size(content: str, limit: int, filename: str = "") -> None:
    """Raise `InvalidArgument` if a content has more bytes than `limit`."""
    size = len(content.encode())
    if size > limit:
        of = f" of {filename}" if filename else ""
        raise InvalidArgument(
            f"The content{of} has {size} bytes, and at most {limit} may be written.",
            next_step="Split it into several files, or raise FILE_WRITE_MAX_BYTES.",
        )
