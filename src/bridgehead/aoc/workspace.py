"""Event: one year's puzzles and speed records on disk, as long as the bridge serves them.

What a call needs of the far side, it asks here. What may take long runs in a thread; what is loaded late is
loaded when the first call needs it.
"""

# ruff: noqa: PTH109 - pathlib would delay the server's first answer

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp.lazy_imports import asyncio
from bridgehead.runtime.timing import Clock, SystemClock

from .files import instructions, layout
from .files.instructions import Instruction
from .files.layout import Folders, find_folders
from .ranking.board import Board, Filters, Row, Skipped
from .ranking.history import Page, Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from bridgehead.runtime.stores import postgres

    from .files.attempts import AttemptStore, Stopwatch
    from .files.day_file import Recorded
    from .files.entries import Entry, Group, Measure, RecordKey
    from .files.instructions import Verdict
    from .files.names import Aliases
    from .files.recorder import NewRun, RecordWriter
    from .files.records import RecordReader
    from .ranking.comparison import Puzzle
    from .settings import AocSettings

T = TypeVar("T")

MAX_BOARDS = 64
"""How many boards are kept for whoever asks again."""


class BoardView(Struct, frozen=True):
    """A board as somebody asked for it."""

    board: Board
    rows: list[Row]
    """Those of the model that was asked for, or all."""
    skipped: list[Skipped]
    """Files that could not be read, and are not in it."""
    days: list[int]
    """The days that have runs."""
    known: list[str]
    """The models that have runs or attempts, whatever was measured."""


class HistoryView(Struct, frozen=True):
    """Single runs as somebody asked for them."""

    page: Page
    known: list[str]
    days: list[int]
    skipped: list[Skipped]


class Workspace:
    """The far side of the aoc bridge."""

    def __init__(
        self,
        year: int,
        folders: Folders,
        lock_wait: float,
        clock: Clock,
        key: RecordKey = "speedMs",
        *,
        database: postgres.Database | None = None,
    ) -> None:
        self.year = year
        self.database = database
        """Where records, attempts and aliases are, if not in the folders."""
        self.folders = folders
        self.clock = clock
        self._lock_wait = lock_wait
        self._key: RecordKey = key
        self._boards: dict[Filters, tuple[object, BoardView]] = {}

    # --- puzzles -------------------------------------------------------------------------------------------

    def instruction(self, day: int) -> Instruction:
        """Read the puzzle of a day."""
        return instructions.read_instruction(self.folders.instructions, day)

    def days(self) -> list[int]:
        """List the days that have a puzzle text, the newest first."""
        return sorted(instructions.list_days(self.folders.instructions), reverse=True)

    # --- records -------------------------------------------------------------------------------------------

    @cached_property
    def recorder(self) -> RecordWriter:
        """Where records are written."""
        if self.database is not None:
            from .database.recorder import DatabaseRecorder

            return DatabaseRecorder(self.database, self.year, self.clock)
        from .files.recorder import Recorder

        return Recorder(self.folders.speeds, self._lock_wait, self.clock, self._key)

    @cached_property
    def records(self) -> RecordReader:
        """Where records are read."""
        if self.database is not None:
            from .database.records import DatabaseRecords

            return DatabaseRecords(self.database, self.year)
        from .files.records import Records

        return Records(self.folders.speeds)

    @cached_property
    def attempts(self) -> AttemptStore:
        """Where attempts are read and written."""
        if self.database is not None:
            from .database.attempts import DatabaseAttempts

            return DatabaseAttempts(self.database, self.year)
        from .files.attempts import Attempts

        return Attempts(self.folders.attempts, self._lock_wait)

    @cached_property
    def stopwatch(self) -> Stopwatch:
        """What times attempts."""
        from .files.attempts import Stopwatch

        return Stopwatch(self.attempts, self.clock)

    def check_answer(self, day: int, phase: int, answer: str) -> Verdict:
        """Compare an answer with the known one. Blocks."""
        return instructions.check_answer(self.folders.answers, day, phase, answer)

    def prepare(self) -> None:
        """Load what records and rankings need, so that the first of them does not wait. Blocks."""
        from .ranking import standings  # noqa: F401 - that it is loaded is the point

        _ = self.records, self.attempts
        if self.database is None:
            self._aliases([])

    async def record(self, run: NewRun, client: int | None = None, key: UUID | None = None) -> Recorded:
        """Record a time, once for each key of a request; it is durable when this returns."""
        return await self.recorder.record(run, client, key)

    async def withdraw(self, day: int, group: Group, timestamp: str) -> Entry:
        """Take a record back."""
        return await self.recorder.withdraw(day, group, timestamp)

    async def settled(self, client: int) -> None:
        """Wait for what a client recorded before it asks for something else."""
        if "recorder" in self.__dict__:
            await self.recorder.settled(client)

    async def run_in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run what blocks on files or on the database; a slow database keeps nobody else from a thread."""
        if self.database is None:
            return await asyncio.to_thread(work, *arguments)
        return await self.database.run_in_thread(work, *arguments)

    # --- boards and histories ------------------------------------------------------------------------------

    async def board(self, filters: Filters, client: int | None = None) -> BoardView:
        """Rank the models, with what changed since the last time read anew."""
        if client is not None:
            await self.settled(client)
        return await self.run_in_thread(self.board_now, filters)

    def board_now(self, filters: Filters) -> BoardView:
        """Do the same at once. Blocks.

        A model that was asked for, and is only on the board of the other measure, is shown there.
        """
        skipped: list[Skipped] = []
        aliases = self._aliases(skipped)
        view = self._whole_board(replace(filters, llm=None), aliases, skipped)
        if filters.llm is None:
            return view
        own = _narrow(view, aliases.look_up(filters.llm))
        if own.rows:
            return own
        measure: Measure = "solving" if view.board.measure == "execution" else "execution"
        other = self._whole_board(replace(filters, llm=None, measure=measure), aliases, [])
        shown = _narrow(other, aliases.look_up(filters.llm)) if filters.measure is None else own
        known = sorted({*view.known, *other.known})
        return replace(shown if shown.rows else own, known=known)

    def _whole_board(self, filters: Filters, aliases: Aliases, skipped: list[Skipped]) -> BoardView:
        from .ranking.standings import rank

        records = self.records.runs(filters.day, skipped)
        state = (
            aliases.identity,
            tuple((day, found.identity) for day, found in records.items()),
            tuple(skipped),
            self.attempts.identity(),
        )
        known = self._boards.get(filters)
        if known is not None and known[0] == state:
            return known[1]
        counts = self.attempts.counts(filters, aliases.of, self.clock.now())
        board = rank({day: found.groups for day, found in records.items()}, filters, aliases.of, counts)
        names = [row.llm for row in board.rows]
        view = BoardView(board, board.rows, skipped, self._days_with_runs(), names)
        if len(self._boards) >= MAX_BOARDS:
            self._boards.clear()
        self._boards[filters] = state, view
        return view

    def tallies_now(self, filters: Filters, board: Board) -> dict[str, dict[Puzzle, list[int]]]:
        """Return the times of each model on a board by puzzle, each in order. Blocks."""
        from .ranking.standings import tally

        records = {day: found.groups for day, found in self.records.runs(filters.day, []).items()}
        found = tally(records, filters, self._aliases([]).of, board.measure)
        return {
            llm: {puzzle: runs.ordered for puzzle, runs in puzzles.items()} for llm, puzzles in found.items()
        }

    async def history(
        self, filters: Filters, limit: int, older: int | None, client: int | None = None
    ) -> HistoryView:
        """List single runs, the newest first."""
        if client is not None:
            await self.settled(client)
        return await self.run_in_thread(self._history, filters, limit, older)

    def _history(self, filters: Filters, limit: int, older: int | None) -> HistoryView:
        from .ranking.history import cut_page

        found, known, skipped = self._find_runs(filters)
        return HistoryView(cut_page(found, limit, older), known, self._days_with_runs(), skipped)

    def runs_now(self, filters: Filters) -> tuple[list[Run], list[Skipped]]:
        """List every run that fits. Blocks."""
        from .ranking.history import as_run

        found, _, skipped = self._find_runs(filters)
        return [as_run(day, entry) for day, entry in found], skipped

    def _find_runs(self, filters: Filters) -> tuple[list[tuple[int, Entry]], list[str], list[Skipped]]:
        from .files.names import canonical_name, match_names
        from .ranking.history import find_runs

        skipped: list[Skipped] = []
        aliases = self._aliases(skipped)
        days = layout.DAYS if filters.day is None else (filters.day,)
        # A file that the question names is refused where it is corrupt; any other one is skipped and named.
        entries = self.records.entries(days, skipped if filters.day is None else None)
        names = {entry.llm for of_day in entries.values() for entry in of_day}
        known = sorted({aliases.of(canonical_name(name)) for name in names})
        llms = None if filters.llm is None else match_names(aliases.look_up(filters.llm), known)
        return find_runs(entries, filters, aliases.of, llms), known, skipped

    async def changes(self) -> object:
        """Return what changes when a record in the database does; None where records are in files."""
        if self.database is None:
            return None
        from .database.records import DatabaseRecords

        return await DatabaseRecords(self.database, self.year).changes()

    async def llms(self) -> list[str]:
        """List the models that have records, under the names that they count as."""
        boards = [await self.board(Filters(measure=measure)) for measure in ("solving", "execution")]
        return sorted({name for view in boards for name in view.known})

    def _aliases(self, skipped: list[Skipped]) -> Aliases:
        from .files.names import read_or_skip

        if self.database is not None:
            from .database.records import DatabaseRecords

            return DatabaseRecords(self.database, self.year).aliases()
        return read_or_skip(self.folders.aliases, skipped)

    def _days_with_runs(self) -> list[int]:
        return self.records.days()

    async def close(self) -> None:
        """Wait for what is being written."""
        if "recorder" in self.__dict__:
            await self.recorder.close()


def open_workspace(
    settings: AocSettings, clock: Clock | None = None, database: postgres.Database | None = None
) -> Workspace:
    """Open the files that the settings name, with the records in a database where there is one."""
    found = find_folders(settings, os.getcwd())
    key: RecordKey = "speed_ms" if settings.record_keys == "speed_ms" else "speedMs"
    wait = settings.lock_wait_ms / 1000
    return Workspace(settings.year, found, wait, clock or SystemClock(), key, database=database)


def _narrow(view: BoardView, name: str) -> BoardView:
    """Leave only the rows of one model."""
    from .files.names import match_names

    wanted = match_names(name, view.known)
    return replace(view, rows=[row for row in view.rows if row.llm in wanted])
