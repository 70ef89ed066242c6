"""Records: every time of every day, read again only for the days whose files have changed. May block."""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from . import days, disk, speeds
from .entries import Entry
from .speeds import MOST_BYTES, NotSpeeds, Times, refused


class DayTimes(NamedTuple):
    """The times of one day, and of which file."""

    times: Times
    identity: disk.Identity


class Records:
    """The records of one event, open for reading."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: dict[int, DayTimes] = {}

    def times(self, wanted: Iterable[int] = days.DAYS) -> dict[int, DayTimes]:
        """Give the times of the days that have any; a corrupt file is refused."""
        found = {day: self._of_day(day) for day in wanted}
        return {day: times for day, times in found.items() if times is not None}

    def _of_day(self, day: int) -> DayTimes | None:
        path = self.path(day)
        identity = disk.identity_of(path)
        known = self._read.get(day)
        if known is not None and known.identity == identity:
            return known
        stored = disk.read(path, MOST_BYTES)
        if stored is None:
            return None
        try:
            known = DayTimes(speeds.times(stored.data, day), stored.identity)
        except NotSpeeds as problem:
            raise refused(path, problem) from problem
        self._read[day] = known
        return known

    def entries(self, day: int) -> list[Entry]:
        """Give the entries of a day, the newest first; a corrupt file is refused."""
        stored = disk.read(self.path(day), MOST_BYTES)
        if stored is None:
            return []
        try:
            return speeds.entries(stored.data, day)
        except NotSpeeds as problem:
            raise refused(self.path(day), problem) from problem

    def path(self, day: int) -> str:
        """Tell where the records of a day are."""
        return os.path.join(self._folder, days.speeds(day))
