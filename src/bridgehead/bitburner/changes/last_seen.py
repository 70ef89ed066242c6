"""LastSeen: which content of a file each agent last read or wrote, and who wrote the current one.

Together they show whether a write replaces content that its author never saw. In memory and bounded: after a
restart an agent has seen nothing. Processes that share a game announce every change to each other, so each
knows the authors.
"""

from __future__ import annotations

import secrets
from typing import TypeVar

from msgspec import Struct

from ..game import paths, timestamps

Place = tuple[str, str]
"""Server and path."""
NO_FILE = ""
"""Used as the digest of a file that does not exist."""
_MAX_ENTRIES = 20_000
_MAX_AGENTS = 200
_MAX_NOTICES = 20
"""Notices kept for an agent that does not call; the oldest are dropped."""

K = TypeVar("K")
V = TypeVar("V")


class Author(Struct, frozen=True):
    """Who wrote a content, when and with which tool."""

    agent: str
    digest: str
    because: str
    at: float


class Overwritten(Struct, frozen=True, omit_defaults=True):
    """A content that a change replaced although the agent had not seen it."""

    filename: str
    server: str
    author: Author | None = None
    """None: it was changed in the game, by the player or a script."""
    is_older: bool = False
    """Whether the game had gone back to an older content, as it does when it loads an older save."""
    version: str | None = None
    """Holds the replaced content; if `is_older`, the content that the game lost."""

    @property
    def cause(self) -> str:
        """The origin of the replaced content."""
        if self.is_older:
            return "the game went back to an older content, probably by loading an older save,"
        if self.author is None:
            return "it was changed in the game"
        return f"another agent wrote it ({self.author.because}, {timestamps.format_utc(self.author.at)})"


class LastSeen:
    """Contents that this process's agents have seen, the authors of current contents, and pending notices."""

    def __init__(self) -> None:
        self.process = secrets.token_hex(6)
        """Prefix of the names of this process's agents; makes them unique across processes."""
        # Bounded: `_put` drops the entry that was put least recently.
        self._seen: dict[tuple[str, Place], str] = {}
        self._authors: dict[Place, Author] = {}
        self._notices: dict[str, list[str]] = {}

    def record_seen(self, agent: str, place: Place, digest: str) -> None:
        """Record the content that an agent has just read or written."""
        _put(self._seen, (agent, place), digest, _MAX_ENTRIES)

    def find_seen(self, agent: str, place: Place) -> str | None:
        """Return the digest of the content that an agent last read or wrote; None if it did neither."""
        return self._seen.get((agent, place))

    def record_author(self, place: Place, author: Author) -> None:
        """Record who wrote the current content of a file."""
        _put(self._authors, place, author, _MAX_ENTRIES)

    def find_author(self, place: Place, digest: str) -> Author | None:
        """Return who wrote this content of a file; None if it has another origin."""
        author = self._authors.get(place)
        return author if author is not None and author.digest == digest and author.agent else None

    def add_notice(self, agent: str, notice: str) -> None:
        """Keep a sentence for the next answer to an agent of this process."""
        if agent.startswith(f"{self.process}/"):
            notices = [*self._notices.get(agent, ()), notice]
            _put(self._notices, agent, notices[-_MAX_NOTICES:], _MAX_AGENTS)

    def take_notices(self, agent: str) -> list[str]:
        """Return the notices for an agent, once."""
        return self._notices.pop(agent, [])


def _name_place(overwritten: Overwritten) -> str:
    server = "" if overwritten.server == paths.HOME else f" on {overwritten.server}"
    return f"{overwritten.filename}{server}"


def describe_overwritten(overwritten: Overwritten) -> str:
    """Describe the replaced content to the agent that replaced it, and how to restore it."""
    place = _name_place(overwritten)
    kept = "It is not kept, because backups are off."
    if overwritten.is_older:
        kept = "The content written before is no longer kept."
    if overwritten.version is not None:
        what = "What was written before" if overwritten.is_older else "The replaced content"
        kept = f"{what} is version {overwritten.version}: give it to restore_file to bring it back."
    return f"{place} did not hold what you last read or wrote: {overwritten.cause} since then. {kept}"


def describe_loss(overwritten: Overwritten) -> str:
    """Tell an agent who replaced its content, and how to restore it."""
    place = _name_place(overwritten)
    kept = (
        "Your content is not kept, because backups are off."
        if overwritten.version is None
        else f"Your content is version {overwritten.version}: give it to restore_file to bring it back."
    )
    return f"Another agent replaced {place}, which you had written, without having read it. {kept}"


def _put(entries: dict[K, V], key: K, value: V, limit: int) -> None:
    """Put an entry last; beyond the limit, drop the first."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > limit:
        del entries[next(iter(entries))]
