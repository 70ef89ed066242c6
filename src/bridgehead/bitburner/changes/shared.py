"""Shared changes: one way to change files, wherever the game is connected.

Where this process owns the game, changes are made here. Where it shares the game of another process, they are
sent there as data, because only one process can compare and push without another one in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Raw

from ..errors import Disconnected, InvalidReply, ReplyTimeout, UnsupportedByGame, add_note
from ..game import wire
from ..game.link import CallFailed
from ..game.remote import to_bridge_error
from .changing import UNKNOWN, Change, Outcome, Step
from .differences import Difference, Differences

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ..game.link import Link
    from ..game.remote import Remote
    from ..game.switchboard import Switchboard
    from .changing import Changer

CHANGE = "bridgehead/change"
DIFFERENCES = "bridgehead/differences"
CHANGED = "bridgehead/changed"
_OWNER_SECONDS = 30.0
"""What the owner may take at least: a change is several exchanges, and may wait for another one to end."""

T = TypeVar("T")


class Changes:
    """Changes files and tells which ones differ, here or at the owner of the game."""

    def __init__(
        self,
        board: Switchboard,
        remote: Remote,
        changer: Changer,
        differences: Differences,
        timeout: float,
    ) -> None:
        self._board = board
        self._remote = remote
        self._changer = changer
        self.differences = differences
        self._timeout = max(_OWNER_SECONDS, 4 * timeout)

    async def apply(self, change: Change) -> Outcome:
        """Make a change."""
        link = await self._board.require_link()
        if link.is_shared:
            try:
                raw = await link.call(CHANGE, msgspec.json.encode(change), self._timeout)
            except CallFailed as failed:
                error = to_bridge_error(CHANGE, failed.failure)
                if not isinstance(error, UnsupportedByGame):
                    raise error from None
                # An owner of version 0.1 only passes requests on: the change is made from here.
            except (Disconnected, ReplyTimeout) as lost:
                raise add_note(lost, UNKNOWN) from None
            else:
                return _decode(CHANGE, raw, Outcome)
        return await self._changer.apply(change)

    async def list_differences(self) -> list[Difference]:
        """Return the files that differ from what was last written; they count as told from now on."""
        link = self._board.link
        if link is None:
            return list(self.differences.found.values())
        if link.is_shared:
            try:
                raw = await self._delegate(link, DIFFERENCES, b"{}")
            except UnsupportedByGame:
                return []
            return _decode(DIFFERENCES, raw, list[Difference])
        found = list(self.differences.found.values())
        await self.differences.acknowledge(self._remote)
        return found

    async def _delegate(self, link: Link, method: str, params: bytes) -> Raw:
        try:
            return await link.call(method, params, self._timeout)
        except CallFailed as failed:
            raise to_bridge_error(method, failed.failure) from None

    # --- the owner's side ----------------------------------------------------------------------------------

    @property
    def operations(self) -> Mapping[str, Callable[[Raw], Awaitable[bytes]]]:
        """What guests may ask of the owner, beside the game's own methods."""
        return {CHANGE: self._serve_change, DIFFERENCES: self._serve_differences}

    async def _serve_change(self, params: Raw) -> bytes:
        return msgspec.json.encode(await self.apply(msgspec.json.decode(params, type=Change)))

    async def _serve_differences(self, _: Raw) -> bytes:
        return msgspec.json.encode(await self.list_differences())


def encode_step(step: Step) -> bytes:
    """Return the notification with which the owner tells its guests of a change."""
    return wire.encode_notification(CHANGED, step)


def _decode(method: str, raw: Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except wire.UNREADABLE as problem:
        raise InvalidReply(method, str(problem)) from None


def encode_differences(found: list[Difference]) -> bytes:
    """Return the notification with which the owner tells its guests which files differ."""
    return wire.encode_notification(DIFFERENCES, found)


def decode_step(notice: wire.Reply) -> Step | None:
    """Return the change that a notification tells of; None where it is another one."""
    return _decode_notice(notice, CHANGED, Step)


def decode_differences(notice: wire.Reply) -> list[Difference]:
    """Return the files that a notification says to differ; none where it is another one."""
    return _decode_notice(notice, DIFFERENCES, list[Difference]) or []


def _decode_notice(notice: wire.Reply, method: str, kind: type[T]) -> T | None:
    if notice.method != method or not isinstance(notice.params, Raw):
        return None
    try:
        return msgspec.json.decode(notice.params, type=kind)
    except wire.UNREADABLE:
        return None  # an owner of another version
