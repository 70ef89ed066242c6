"""Differences: detect files that no longer hold the content last written to them through this bridge.

A game that loads an older save forgets later pushes, and the player's next save in the game's editor
overwrites a push, both silently. The history has the written content, so detecting and reporting is enough.
The game's content shows which of the two happened: an older version, or an unknown text.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.timing import Clock

from ..errors import MissingFile
from ..game.remote import Remote
from .history import History, Version, digest

log = logs.logger("bitburner.differences")

_MAX_SINGLE_READS = 8
"""Files of one server that are read one by one; above that, all its files are read in one exchange."""
_MAX_SHOWN = 10

State = Literal["missing", "older", "changed", "back"]


class Difference(Struct, frozen=True):
    """A file that does not hold the content last written to it, or exists although it was deleted."""

    server: str
    filename: str
    state: State


class Differences:
    """The content last written to each file, and the files that differ from it."""

    def __init__(self, history: History, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._all_expected: dict[str, dict[tuple[str, str], str | None]] = {}
        """For each game, the digest of the last written content by server and path, None if deleted; least
        recent first."""
        self._unreported: set[tuple[str, str]] = set()
        self._logged: set[tuple[str, str]] = set()
        self.found: dict[tuple[str, str], Difference] = {}
        self.is_checked = asyncio.Event()
        """Cleared when a game connects, set once it has been compared."""
        self.is_checked.set()

    async def load(self) -> None:
        """Read the last writes from the history; an unreadable history means nothing is compared."""
        if not self._history.is_on:
            return
        try:
            written = await asyncio.to_thread(self._history.list_last_writes)
        except (OSError, BridgeError):
            return
        # Oldest first, as `record_change` keeps them.
        for entry in reversed(written):
            game, _, server = entry.server.rpartition(":")
            self._all_expected.setdefault(game, {})[server, entry.filename] = entry.digest

    @property
    def _expected(self) -> dict[tuple[str, str], str | None]:
        return self._all_expected.setdefault(self._history.game, {})

    def use_game(self) -> None:
        """Forget what was found in another game than the one that has connected."""
        self.found.clear()
        self._unreported.clear()

    def record_change(self, place: tuple[str, str], new_digest: str | None) -> None:
        """Expect the content of a change made through the bridge; None means deleted."""
        # Removed first, so that it moves to the end: the least recently written file is dropped first.
        self._expected.pop(place, None)
        self._expected[place] = new_digest
        while len(self._expected) > self._history.max_files:
            del self._expected[next(iter(self._expected))]
        self.found.pop(place, None)
        self._unreported.discard(place)

    def forget(self, place: tuple[str, str]) -> None:
        """Expect nothing of a file any more."""
        self._expected.pop(place, None)
        self.found.pop(place, None)
        self._unreported.discard(place)

    def is_unexpected(self, place: tuple[str, str], now: str) -> bool:
        """Return whether a file that was written through the bridge now holds something else."""
        return self._expected.get(place, now) != now

    async def check_all(self, remote: Remote) -> list[Difference]:
        """Compare every expected file with the game's; return all differences."""
        by_server: dict[str, list[str]] = {}
        for server, filename in self._expected:
            by_server.setdefault(server, []).append(filename)
        try:
            for server, filenames in by_server.items():
                if len(filenames) > _MAX_SINGLE_READS:
                    files = {file.filename: file.content for file in await remote.read_all(server)}
                    contents = {filename: files.get(filename) for filename in filenames}
                else:
                    contents = {
                        filename: await _read_file(remote, server, filename) for filename in filenames
                    }
                for filename, content in contents.items():
                    await self.check(server, filename, content)
        except BridgeError:
            return []  # the game disconnected, or the server is gone; the next read of a file compares it
        # A page that shows differences calls this every few seconds: log only new ones.
        if self.found.keys() - self._logged:
            self._logged = set(self.found)
            log.warn("files differ from what was written", files=len(self.found))
        return list(self.found.values())

    async def check(self, server: str, filename: str, content: str | None) -> Difference | None:
        """Compare the content just read (None: no such file) with the content last written."""
        place = (server, filename)
        is_unwritten = place not in self._expected
        expected = self._expected.get(place)
        if is_unwritten or expected == (None if content is None else digest(content)):
            self.found.pop(place, None)
            return None
        state: State = "changed"
        if content is None:
            state = "missing"
        elif expected is None:
            state = "back"
        else:
            try:
                if await asyncio.to_thread(self._history.holds, server, filename, content):
                    state = "older"
            except (OSError, BridgeError):
                pass  # without a readable history, an older version looks like any other change
        difference = Difference(server, filename, state)
        # The player may go on in a file that differs already: then it is another difference.
        if self.found.get(place) != difference:
            self.found[place] = difference
            self._unreported.add(place)
        return difference

    async def acknowledge(self, remote: Remote) -> None:
        """Record the game's contents as versions, once the differences have been reported to an agent.

        The bridge's own content is then no longer the last version, so the next process does not report them
        again. It stays the version before, so a plain restore brings it back.
        """
        for server, filename in tuple(self._unreported):
            try:
                content = await _read_file(remote, server, filename)
                version = Version(server, filename, self._clock.now(), "a change in the game", content)
                await asyncio.to_thread(self._history.record, version)
            except BridgeError:
                return
            self._unreported.discard((server, filename))


async def _read_file(remote: Remote, server: str, filename: str) -> str | None:
    try:
        return await remote.read(filename, server)
    except MissingFile:
        return None


_STATES: dict[State, str] = {
    "missing": "{} missing",
    "older": "{} back to an older content",
    "changed": "{} changed in the game",
    "back": "{} there again although deleted",
}


def describe_differences(differences: list[Difference]) -> str:
    """Name the files that differ, and how to restore them; empty without differences."""
    if not differences:
        return ""
    count = len(differences)
    files = "1 file differs" if count == 1 else f"{count} files differ"
    is_older = any(difference.state in ("missing", "older", "back") for difference in differences)
    cause = "The game seems to have loaded an older save. " if is_older else ""
    groups = []
    for state, words in _STATES.items():
        names = [
            difference.filename
            if difference.server == "home"
            else f"{difference.filename} on {difference.server}"
            for difference in differences
            if difference.state == state
        ]
        if names:
            more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
            verb = "is" if len(names) == 1 else "are"
            groups.append(f"{', '.join(names[:_MAX_SHOWN])}{more} {words.format(verb)}")
    steps = []
    if any(difference.state != "back" for difference in differences):
        steps.append("restore_file brings back what was written, with filenames several at once.")
    if any(difference.state == "back" for difference in differences):
        steps.append("delete_file deletes again what was deleted.")
    return f"{cause}{files} from what was last written here: {'; '.join(groups)}. {' '.join(steps)}"
