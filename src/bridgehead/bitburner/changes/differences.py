"""Differences: notices files that no longer hold what was last written to them through this bridge.

A game that loads an older save forgets what was pushed since, and a file that is open in the game's editor is
overwritten by the player's next save, both without a word. What was written is in the history, so all that is
needed is to notice and to say so. Which of the two it was shows in the content: an older version, or an
unknown one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError

from ..errors import RemoteFailure
from .changing import Step, digest
from .history import Version

if TYPE_CHECKING:
    from bridgehead.runtime.timing import Clock

    from ..game.remote import Remote
    from .history import History

log = logs.logger("bitburner.differences")

_MOST_FILES = 500
"""Files that are compared when a game connects; the newest writes matter most."""
_MOST_SINGLY = 8
_SHOWN = 10

State = Literal["missing", "older", "changed", "back"]


class Difference(Struct, frozen=True):
    """A file that does not hold what was last written to it, or is back although it was deleted."""

    server: str
    filename: str
    state: State


class Expected(Struct, frozen=True):
    """What a file should hold: a digest, or nothing where it was deleted."""

    digest: str | None


class Differences:
    """What was last written to each file, and which files differ from that."""

    def __init__(self, history: History, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._expected: dict[tuple[str, str], Expected] = {}
        self._untold: set[tuple[str, str]] = set()
        self._reported: set[tuple[str, str]] = set()
        self.found: dict[tuple[str, str], Difference] = {}

    async def load(self) -> None:
        """Read what was last written from the history; a history that cannot be read expects nothing."""
        if not self._history.is_on:
            return
        try:
            written = await asyncio.to_thread(self._history.list_last_writes)
        except (OSError, BridgeError):
            return
        for version in written[:_MOST_FILES]:
            content = version.content
            place = (version.server, version.filename)
            self._expected.setdefault(place, Expected(None if content is None else digest(content)))

    def note_step(self, step: Step) -> None:
        """Take in a change that was made through the bridge."""
        place = (step.server, step.filename)
        self._expected.pop(place, None)
        self._expected[place] = Expected(step.digest)
        while len(self._expected) > _MOST_FILES:
            del self._expected[next(iter(self._expected))]
        self.found.pop(place, None)
        self._untold.discard(place)

    async def check_all(self, remote: Remote) -> list[Difference]:
        """Compare every file that was written with what a game that has just connected holds."""
        by_server: dict[str, list[str]] = {}
        for server, filename in self._expected:
            by_server.setdefault(server, []).append(filename)
        try:
            for server, filenames in by_server.items():
                for filename, content in (await _read_files(remote, server, filenames)).items():
                    await self.check(server, filename, content)
        except BridgeError:
            return []  # the game has gone again, or the server; a read will tell
        if self.found.keys() - self._reported:  # a page that shows them asks again and again
            self._reported = set(self.found)
            log.warn("files differ from what was written", files=len(self.found))
        return list(self.found.values())

    async def check(self, server: str, filename: str, content: str | None) -> Difference | None:
        """Compare what a file was just read to hold; returns how it differs."""
        place = (server, filename)
        expected = self._expected.get(place)
        if expected is None or expected.digest == (None if content is None else digest(content)):
            self.found.pop(place, None)
            return None
        known = self.found.get(place)
        if known is None:
            state = await asyncio.to_thread(self._classify, server, filename, content, expected)
            known = self.found[place] = Difference(server, filename, state)
            self._untold.add(place)
        return known

    def _classify(self, server: str, filename: str, content: str | None, expected: Expected) -> State:
        if content is None:
            return "missing"
        if expected.digest is None:
            return "back"
        try:
            versions = self._history.list_versions(server, filename)
        except (OSError, BridgeError):
            return "changed"
        return "older" if any(version.content == content for version in versions) else "changed"

    async def acknowledge(self, remote: Remote) -> None:
        """Keep what the game holds as versions, now that somebody was told: it is told only once.

        What was written stays the version before it, so a plain restore brings that back.
        """
        for server, filename in tuple(self._untold):
            try:
                content = await _read_file(remote, server, filename)
                found = Version(server, filename, self._clock.now(), "a change in the game", content)
                await asyncio.to_thread(self._history.record, found)
            except BridgeError:
                return
            self._untold.discard((server, filename))


async def _read_files(remote: Remote, server: str, filenames: list[str]) -> dict[str, str | None]:
    """Return what files hold, None for those that are not there: one by one, or all at once if many."""
    if len(filenames) > _MOST_SINGLY:
        files = {one.filename: one.content for one in await remote.read_all(server)}
        return {filename: files.get(filename) for filename in filenames}
    return {filename: await _read_file(remote, server, filename) for filename in filenames}


async def _read_file(remote: Remote, server: str, filename: str) -> str | None:
    try:
        return await remote.read(filename, server)
    except RemoteFailure as error:
        if error.is_missing_file:
            return None
        raise


_STATES: dict[State, str] = {
    "missing": "{} missing",
    "older": "{} back to an older content",
    "changed": "{} changed in the game",
    "back": "{} there again although deleted",
}


def describe_differences(differences: list[Difference]) -> str:
    """Say which files differ, and how to bring them back; nothing where none does."""
    if not differences:
        return ""
    count = len(differences)
    files = "1 file differs" if count == 1 else f"{count} files differ"
    is_older = any(one.state in ("missing", "older", "back") for one in differences)
    cause = "The game seems to have loaded an older save. " if is_older else ""
    told = []
    for state, words in _STATES.items():
        names = [_name(one) for one in differences if one.state == state]
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            verb = "is" if len(names) == 1 else "are"
            told.append(f"{', '.join(names[:_SHOWN])}{more} {words.format(verb)}")
    return (
        f"{cause}{files} from what was last written here: {'; '.join(told)}. "
        "restore_file brings back what was written; give it filenames for several at once."
    )


def _name(one: Difference) -> str:
    return one.filename if one.server == "home" else f"{one.filename} on {one.server}"
