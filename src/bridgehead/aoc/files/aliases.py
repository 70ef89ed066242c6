"""Aliases: which names of LLMs mean the same one, as `aliases.json` says.

    {"gpt4": ["gpt-4", "gpt4agent"]}

Records keep the name that they were made with; rankings and histories count all names of one LLM as one.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from bridgehead.runtime.errors import StorageError

from .entries import Name
from .snapshot import Identity, read_snapshot

MAX_BYTES = 1024 * 1024


class Aliases(Struct, frozen=True):
    """For each other name the one that it counts as."""

    names: dict[str, str] = {}
    identity: Identity | None = None

    def of(self, name: str) -> str:
        """Give the name under which an LLM counts."""
        return self.names.get(name, name)


def read(path: str) -> Aliases:
    """Read the file with the aliases, which need not exist; raises `StorageError` where it is broken."""
    stored = read_snapshot(path, MAX_BYTES)
    if stored is None:
        return Aliases()
    try:
        said = msgspec.json.decode(stored.data, type=dict[Name, list[Name]])
        return Aliases(_turned(said), stored.identity)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise StorageError(
            f"{path} is broken: {error}.", next_step='Write it like {"gpt4": ["gpt-4", "gpt4agent"]}.'
        ) from error


def _turned(said: dict[str, list[str]]) -> dict[str, str]:
    """Turn the lists around; a name may stand for one LLM only."""
    names: dict[str, str] = {}
    for llm, others in said.items():
        for other in others:
            if other in said and other != llm:
                raise ValueError(f"{other!r} has aliases of its own and is one of {llm!r}")
            if names.setdefault(other, llm) != llm:
                raise ValueError(f"{other!r} is an alias of both {names[other]!r} and {llm!r}")
    return names
