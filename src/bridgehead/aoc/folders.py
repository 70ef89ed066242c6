"""Folders: where the files of one event are, worked out from the settings and the current directory."""

# ruff: noqa: PTH112, PTH118 - pathlib would delay the server's first answer

from __future__ import annotations

import os

from msgspec import Struct

from .settings import AocSettings

INSTRUCTIONS = "instructions"
SPEEDS = "speeds"
ALIASES = "aliases.json"


class Folders(Struct, frozen=True):
    """The places of one event's files. None of them needs to exist."""

    instructions: str
    speeds: str
    aliases: str
    """The file with the aliases, which are the same for all years."""


def folders(settings: AocSettings, current: str) -> Folders:
    """Find the folders; a year that has one of its own in the data directory lives there."""
    data = settings.data_dir or _default_data(current)
    of_year = os.path.join(data, str(settings.year))
    event = of_year if os.path.isdir(of_year) else data
    return Folders(
        instructions=settings.instructions_dir or os.path.join(event, INSTRUCTIONS),
        speeds=settings.speeds_dir or os.path.join(event, SPEEDS),
        aliases=os.path.join(data, ALIASES),
    )


def _default_data(current: str) -> str:
    if any(os.path.isdir(os.path.join(current, name)) for name in (INSTRUCTIONS, SPEEDS)):
        return current
    from bridgehead.runtime import places  # brings pathlib and platformdirs, which few starts need

    return str(places.user_data("aoc"))
