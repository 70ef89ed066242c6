"""Aliases: which names of LLMs mean the same one, as `aliases.json` says.

    {"gpt4": ["gpt-4", "gpt4agent"]}

Records keep the name that they were made with; rankings and histories count all names of one LLM as one.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from bridgehead.runtime.errors import StorageError

from ..ranking.board import Skipped
from .day_document import BYTE_ORDER_MARK, UNDECODABLE
from .entries import Name
from .names import canonical_name
from .snapshot import Identity, read_snapshot

MAX_BYTES = 1024 * 1024


class Aliases(Struct, frozen=True):
    """For each other name the one that it counts as."""

    names: dict[str, str] = {}
    identity: Identity | None = None

    def of(self, name: str) -> str:
        """Return the name under which an LLM counts."""
        return self.names.get(name, name)

    def look_up(self, name: str) -> str:
        """Return the same for a name that somebody typed, in any spelling and case."""
        cleaned = canonical_name(name)
        if cleaned in self.names:
            return self.names[cleaned]
        folded = {other.casefold(): llm for other, llm in self.names.items()}
        return folded.get(cleaned.casefold(), cleaned)


def read_aliases(path: str) -> Aliases:
    """Read the file with the aliases, which need not exist; raises `StorageError` where it is broken."""
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        return Aliases()
    try:
        said = msgspec.json.decode(stored.data.removeprefix(BYTE_ORDER_MARK), type=dict[Name, list[Name]])
        return Aliases(_turn_around(said), stored.identity)
    except (*UNDECODABLE, ValueError) as error:
        raise StorageError(
            f"{path} is broken: {error}.", next_step='Write it like {"gpt4": ["gpt-4", "gpt4agent"]}.'
        ) from error


def read_or_skip(path: str, skipped: list[Skipped]) -> Aliases:
    """Read the aliases; a broken file is named, and every name then counts as itself."""
    try:
        return read_aliases(path)
    except StorageError as problem:
        skipped.append(Skipped(path, problem.message))
        return Aliases()


def _turn_around(said: dict[str, list[str]]) -> dict[str, str]:
    """Turn the lists around; a name may stand for one LLM only."""
    names: dict[str, str] = {}
    for llm, others in said.items():
        for other in map(canonical_name, others):
            if other in said and other != llm:
                raise ValueError(f"{other!r} has aliases of its own and is one of {llm!r}")
            if names.setdefault(other, canonical_name(llm)) != canonical_name(llm):
                raise ValueError(f"{other!r} is an alias of both {names[other]!r} and {llm!r}")
    return names
