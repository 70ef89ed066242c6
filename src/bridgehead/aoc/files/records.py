"""Records: every run of every day, read again only for the days whose files have changed. May block."""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import os
from typing import NamedTuple

from ..ranking.figures import Runs
from . import day_document, layout
from .day_document import MAX_BYTES, CorruptDay, corrupt_file
from .entries import Entry
from .snapshot import Identity, identify, read_snapshot


class DayRuns(NamedTuple):
    """The runs of one day by phase and LLM, and of which file."""

    runs: dict[int, dict[str, Runs]]
    identity: Identity


class Records:
    """The records of one event, open for reading."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: dict[int, DayRuns] = {}

    def runs(self) -> dict[int, DayRuns]:
        """Give the runs of the days that have any; a corrupt file is corrupt_file."""
        found = {day: self._of_day(day) for day in layout.DAYS}
        return {day: runs for day, runs in found.items() if runs is not None}

    def _of_day(self, day: int) -> DayRuns | None:
        path = self.path(day)
        identity = identify(path)
        known = self._read.get(day)
        if known is not None and known.identity == identity:
            return known
        stored = read_snapshot(path, MAX_BYTES)
        if stored is None:
            return None
        try:
            times = day_document.decode_times(stored.data, day)
        except CorruptDay as problem:
            raise corrupt_file(path, problem) from problem
        runs = {phase: {llm: Runs(of) for llm, of in by_llm.items()} for phase, by_llm in times.items()}
        known = self._read[day] = DayRuns(runs, stored.identity)
        return known

    def entries(self, day: int) -> list[Entry]:
        """Give the entries of a day, the newest first; a corrupt file is corrupt_file."""
        stored = read_snapshot(self.path(day), MAX_BYTES)
        if stored is None:
            return []
        try:
            return day_document.decode_entries(stored.data, day)
        except CorruptDay as problem:
            raise corrupt_file(self.path(day), problem) from problem

    def path(self, day: int) -> str:
        """Tell where the records of a day are."""
        return os.path.join(self._folder, layout.speeds_name(day))
