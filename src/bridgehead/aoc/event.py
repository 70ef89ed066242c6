"""Event: one year's puzzles and speed records on disk, as long as the bridge serves them.

What a call needs of the far side, it asks here. What may take long runs in a thread; what is loaded late is
loaded when the first call needs it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.timing import Clock

from .files import instructions
from .files.instructions import Instruction
from .files.layout import Folders

if TYPE_CHECKING:
    from .files.aliases import Aliases
    from .files.day_file import Recorded
    from .files.recorder import Recorder
    from .files.records import Records
    from .ranking.board import Board, Filters
    from .ranking.history import Page

MAX_BOARDS = 64
"""How many boards are kept for whoever asks again."""


class Event:
    """The far side of the aoc bridge."""

    def __init__(self, year: int, folders: Folders, lock_wait: float, clock: Clock) -> None:
        self.year = year
        self.folders = folders
        self._lock_wait = lock_wait
        self._clock = clock
        self._boards: dict[Filters, tuple[object, Board]] = {}

    def instruction(self, day: int) -> Instruction:
        """Read the puzzle of a day."""
        return instructions.read(self.folders.instructions, day)

    def days(self) -> list[int]:
        """List the days that have a puzzle text, the newest first."""
        return sorted(instructions.available(self.folders.instructions), reverse=True)

    @cached_property
    def recorder(self) -> Recorder:
        """Where records are written."""
        from .files.recorder import Recorder

        return Recorder(self.folders.speeds, self._lock_wait, self._clock)

    @cached_property
    def records(self) -> Records:
        """Where records are read."""
        from .files.records import Records

        return Records(self.folders.speeds)

    def prepare(self) -> None:
        """Load what records and rankings need, so that the first of them does not wait for it."""
        from .ranking import board  # noqa: F401 - that it is loaded is the point

        _ = self.recorder, self.records, self.aliases()

    async def record(self, day: int, phase: int, llm: str, time: int) -> Recorded:
        """Record a time; it is on the disk when this returns."""
        return await self.recorder.record(day, phase, llm, time)

    async def board(self, filters: Filters) -> Board:
        """Rank the LLMs, with what changed since the last time read anew."""
        return await asyncio.to_thread(self.board_now, filters)

    def board_now(self, filters: Filters) -> Board:
        """Do the same at once; may block."""
        from .ranking.board import ranked

        aliases, records = self.aliases(), self.records.runs()
        state = aliases.identity, tuple((day, found.identity) for day, found in records.items())
        known = self._boards.get(filters)
        if known is not None and known[0] == state:
            return known[1]
        board = ranked({day: found.runs for day, found in records.items()}, filters, aliases.of)
        if len(self._boards) >= MAX_BOARDS:
            self._boards.clear()
        self._boards[filters] = state, board
        return board

    def times_now(self, filters: Filters) -> dict[str, list[int]]:
        """Give all times of each LLM, in order; may block."""
        from .ranking.board import all_runs, tallied

        records = {day: found.runs for day, found in self.records.runs().items()}
        tallies = tallied(records, filters, self.aliases().of)
        return {
            llm: sorted(time for runs in all_runs(tally) for time in runs.ordered)
            for llm, tally in tallies.items()
        }

    async def history(self, filters: Filters, limit: int, older: int | None) -> Page:
        """Give single runs, the newest first."""
        return await asyncio.to_thread(self._history, filters, limit, older)

    def _history(self, filters: Filters, limit: int, older: int | None) -> Page:
        from .files import layout
        from .ranking.history import page

        wanted = layout.DAYS if filters.day is None else (filters.day,)
        found = {day: self.records.entries(day) for day in wanted}
        return page(found, filters, self.aliases().of, limit=limit, older=older)

    async def llms(self) -> list[str]:
        """List the LLMs that have records, under the names that they count as."""
        from .ranking.board import Filters

        board = await self.board(Filters())
        return sorted(row.llm for row in board.rows)

    def aliases(self) -> Aliases:
        """Read which names mean the same LLM."""
        from .files import aliases

        return aliases.read(self.folders.aliases)

    async def close(self) -> None:
        """Wait for what is being written."""
        if "recorder" in self.__dict__:
            await self.recorder.close()
