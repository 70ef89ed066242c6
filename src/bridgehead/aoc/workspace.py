"""Workspace: one year's puzzles, records and attempts, in folders or partly in a database.

Tools reach records, attempts and boards through this class alone. Slow work runs in a thread; modules that
the handshake does not need are imported by the first call that does.
"""

# ruff: noqa: PTH109 - paths are strings here

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp import Context
from bridgehead.runtime.callers import hide_folder
from bridgehead.runtime.directories import open_state
from bridgehead.runtime.errors import StorageError, Unavailable
from bridgehead.runtime.timing import Clock, SystemClock

from .files import instructions, layout
from .files.attempts import (
    ANSWERED,
    AttemptOutcome,
    Attempts,
    AttemptStep,
    AttemptStore,
    Stopwatch,
    TimedAttempt,
)
from .files.entries import (
    CLAIMED,
    MEASURED,
    VERIFIED,
    Details,
    Entry,
    Grade,
    Group,
    Measure,
    RecordKey,
    moment_of,
)
from .files.figures import Runs
from .files.filters import Filters, Puzzle, RunFilter, Skipped
from .files.history import Attempt, Page, Run, as_run, cut_page, failed_attempt, find_runs, recorded_attempt
from .files.instructions import Instruction, Verdict
from .files.layout import Folders, find_folders
from .files.names import Aliases, canonical_name, fold_name, match_names, merge_spellings, read_or_skip
from .files.recorder import NewRun, Recorder, RecordWriter
from .files.records import DayCounts, RecordReader, Records
from .files.seals import Seals
from .handouts import Handouts
from .ranking.standings import Board, Row, merge, rank, tally
from .settings import AocSettings

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres


T = TypeVar("T")

LOCK_SECONDS = 10.0
"""How long a write waits for another process that writes to the folder. A record holds the lock for
milliseconds, so whoever holds it longer hangs; and clients wait for an answer for a minute or so."""
COMMAND_LINE = "command line"
"""The caller of programs that `run` measures, unless the settings name one."""
MAX_BOARDS = 64
"""Limit of cached boards, and of cached selections of runs."""


class BoardView(Struct, frozen=True):
    """The result of a query for a board."""

    board: Board
    rows: list[Row]
    """The rows of the model in the filters, or all."""
    skipped: list[Skipped]
    """Files that could not be read and are left out."""
    days: list[int]
    """Days that have runs."""
    known: list[str]
    """Models that have runs or attempts, of either measure."""


class HistoryView(Struct, frozen=True):
    """The result of a query for a history."""

    page: Page
    known: list[str]
    days: list[int]
    skipped: list[Skipped]


class _Chosen(NamedTuple):
    """The runs that pass the filters of a history."""

    filter: RunFilter
    days: list[int]
    total: int
    known: list[str]


class PastAttempts(NamedTuple):
    """A model's earlier attempts at a day."""

    handed_out: set[int]
    """The phases whose text it has been given."""
    answers: Counter[int]
    """How many answers it has handed in, by phase."""
    has_solved_first: bool
    """Whether it has solved phase 1, or handed in an answer that nobody can check."""


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
        seals: Seals | None = None,
        database: postgres.Database | None = None,
        caller: str = "",
    ) -> None:
        self.year = year
        self.seals = seals
        """Proves the grades of records in files; None treats every grade as claimed."""
        self.database = database
        """Holds records, attempts and aliases; None if they are in the folders."""
        self.folders = folders
        # Determined at the start, before a disk can be unmounted.
        self._anchors = {
            path: layout.find_anchor(path, folders.required) for path in (folders.speeds, folders.attempts)
        }
        self.clock = clock
        self._lock_wait = lock_wait
        self._key: RecordKey = key
        self.handouts = Handouts()
        self.process = f"process {os.urandom(6).hex()}"
        """The caller of all calls over stdio, unless the settings name one."""
        self._caller = caller
        self._boards: dict[Filters, tuple[object, BoardView]] = {}
        self._chosen: dict[Filters, tuple[object, _Chosen]] = {}

    # --- puzzles -------------------------------------------------------------------------------------------

    def instruction(self, day: int) -> Instruction:
        """Read the puzzle of a day."""
        return instructions.read_instruction(self.folders.instructions, day)

    def days(self) -> list[int]:
        """List the days that have a puzzle text, newest first."""
        return sorted(layout.list_days(self.folders.instructions), reverse=True)

    # --- records -------------------------------------------------------------------------------------------

    @cached_property
    def recorder(self) -> RecordWriter:
        """Writes records."""
        if self.database is not None:
            from .database.recorder import DatabaseRecorder  # lazy: PostgreSQL, 14 ms

            return DatabaseRecorder(self.database, self.year, self.clock)

        speeds = self.folders.speeds
        anchor = self._anchors[speeds]
        return Recorder(speeds, self._lock_wait, self.clock, self._key, self.seals, anchor)

    @cached_property
    def records(self) -> RecordReader:
        """Reads records."""
        if self.database is not None:
            from .database.records import DatabaseRecords  # lazy: PostgreSQL, 14 ms

            return DatabaseRecords(self.database, self.year)

        return Records(self.folders.speeds, self.seals)

    @cached_property
    def attempts(self) -> AttemptStore:
        """Reads and writes attempts."""
        if self.database is not None:
            from .database.attempts import DatabaseAttempts  # lazy: PostgreSQL, 14 ms

            return DatabaseAttempts(self.database, self.year)

        attempts = self.folders.attempts
        return Attempts(attempts, self._lock_wait, self.seals, self._anchors[attempts])

    @cached_property
    def stopwatch(self) -> Stopwatch:
        """Times attempts."""
        return Stopwatch(self.attempts, self.clock)

    def past_attempts(
        self, day: int, llm: str, *callers: str | None, before: str | None = None
    ) -> PastAttempts:
        """Return the earlier attempts of a model, or of any of these callers, at a day. Blocks.

        With an attempt in `before`, only phases handed out before it began count as given.
        """
        if self.process in callers:
            callers = (*callers, COMMAND_LINE)  # one user of one machine
        aliases = self._aliases([])
        name = fold_name(aliases.look_up(llm))
        own: set[str] = set()
        past = PastAttempts(set(), Counter(), has_solved_first=False)
        is_before = True
        for step in self.attempts.steps(day):
            is_before = is_before and step.attempt != before
            is_named = fold_name(aliases.look_up(step.llm)) == name
            # Only the first step of an attempt names its caller.
            is_own = is_named or step.attempt in own or (step.caller is not None and step.caller in callers)
            if not is_own:
                continue
            if step.measure == "execution":
                # A program whose answer was wrong has told as much as a wrong answer.
                past.answers[step.phase] += step.outcome == "wrong"
                continue
            own.add(step.attempt)
            if is_before:
                # The text of phase 2 includes that of phase 1.
                past.handed_out.update(range(1, step.phase + 1))
            past.answers[step.phase] += step.outcome in ANSWERED
            if is_named and step.phase == 1 and step.outcome in {"solved", "unchecked"}:
                past = past._replace(has_solved_first=True)
        return past

    def record_run(
        self,
        day: int,
        phase: int,
        llm: str,
        outcome: AttemptOutcome,
        milliseconds: int,
        grade: Grade,
        *,
        is_wrong: bool = False,
    ) -> None:
        """Store a finished run of a program, which a command has timed. Blocks."""
        caller = self._caller or COMMAND_LINE
        self.stopwatch.record_run(
            day, phase, llm, outcome, milliseconds, grade, caller=caller, is_wrong=is_wrong
        )

    def store_handout(self, caller: str, day: int, phases: list[int]) -> None:
        """Store that a caller was given phases, so that every process knows it. Blocks."""
        if caller == self.process or not phases:
            return
        try:
            self.stopwatch.record_handout(day, phases, caller)
        except (StorageError, Unavailable) as failure:
            # Puzzles can be read while records cannot be written. This process still remembers it.
            logging.getLogger("bridgehead.aoc").warning("a handout of day %d is not stored: %s", day, failure)

    def caller_of(self, ctx: Context[Workspace]) -> str:
        """Return the caller: a token, an address (without authentication), or over stdio this process."""
        address = ctx.connection.caller
        # One machine has many loopback addresses, and any client there may use each of them.
        if address == "::1" or address.startswith(("127.", "::ffff:127.")):
            address = "127.0.0.1"
        return ctx.principal or address or self._caller or self.process

    async def record_attempt(
        self, attempt: TimedAttempt, client: int | None = None, caller: str | None = None
    ) -> bool:
        """Record the time of a solved attempt, once; return whether it has a record."""
        end = attempt.end
        if end is None or end.outcome not in {"solved", "unchecked"}:
            return False
        if end.verdict is not None:  # without one, version 0.2 has recorded it already
            details = Details(
                end.attempt,
                attempt.tries,
                attempt.wrong,
                tokens=end.tokens,
                cost_usd=end.cost_usd,
                caller=caller,
            )
            run = NewRun(attempt.day, end.phase, end.llm, end.time or 1, "solving", end.grade, details)
            await self.recorder.record(run, client)
        return True

    async def record_missing(self) -> None:
        """Record attempts whose record is missing because of a crash right after their end."""
        # Safe if another process is about to write the same record: an attempt is recorded only once.
        for attempt in await self.run_in_thread(self._unrecorded_attempts):
            await self.record_attempt(attempt, None, attempt.started.owner)

    def _unrecorded_attempts(self) -> list[TimedAttempt]:
        missing: list[TimedAttempt] = []
        for day in layout.DAYS:
            by_attempt: dict[str, list[AttemptStep]] = {}
            try:
                steps = self.attempts.steps(day)
            except StorageError as failure:
                logging.getLogger("bridgehead.aoc").warning("attempts were not checked: %s", failure)
                continue
            for step in steps:
                by_attempt.setdefault(step.attempt, []).append(step)
            ended = {
                name: steps
                for name, steps in by_attempt.items()
                if steps[-1].outcome in {"solved", "unchecked"} and steps[-1].verdict is not None
            }
            if ended:  # otherwise the day's records need not be read
                recorded = self.records.attempts(day)
                missing += [
                    TimedAttempt(day, steps, 0) for name, steps in ended.items() if name not in recorded
                ]
        return missing

    def check_answer(self, day: int, phase: int, answer: str) -> Verdict:
        """Compare an answer with the known one. Blocks."""
        return instructions.check_answer(self.folders.answers, day, phase, answer)

    def prepare(self) -> None:
        """Import the modules of records and rankings before the first call needs them. Blocks."""
        _ = self.records, self.attempts
        if self.database is None:
            self._aliases([])

    async def settled(self, client: int) -> None:
        """Wait until the client's records are stored: its next request must see them."""
        # Not through the cached property, which would create a recorder just to find it idle.
        if "recorder" in self.__dict__:
            await self.recorder.settled(client)

    async def run_in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run blocking work. The database has threads of its own: a slow one must not starve file work."""
        if self.database is None:
            return await asyncio.to_thread(work, *arguments)
        return await self.database.run_in_thread(work, *arguments)

    # --- boards and histories ------------------------------------------------------------------------------

    async def board(self, filters: Filters, client: int | None = None) -> BoardView:
        """Rank the models; only files that changed are read again."""
        if client is not None:
            await self.settled(client)
        view = await self.run_in_thread(self.board_now, filters)
        return replace(view, skipped=_shown(view.skipped)) if view.skipped else view

    def board_now(self, filters: Filters) -> BoardView:
        """Blocking version of `board`.

        Without a measure in the filters, a model that only has runs of the other measure is shown on that
        board.
        """
        skipped: list[Skipped] = []
        aliases = self._aliases(skipped)
        view = self._whole_board(replace(filters, llm=None), aliases, skipped)
        if filters.llm is None:
            return view

        def narrow(whole: BoardView) -> BoardView:
            names = match_names(name, whole.known)
            return replace(whole, rows=[row for row in whole.rows if row.llm in names])

        name = aliases.look_up(filters.llm)
        # Narrowed after ranking: a model's rank is among all models.
        own = narrow(view)
        if not own.rows and view.board.left_out:
            own = narrow(self._whole_board(replace(filters, llm=name), aliases, []))
        if own.rows:
            return own
        measure: Measure = "solving" if view.board.measure == "execution" else "execution"
        other = self._whole_board(replace(filters, llm=None, measure=measure), aliases, [])
        shown = narrow(other) if filters.measure is None else own
        known = sorted({*view.known, *other.known})
        return replace(shown if shown.rows else own, known=known)

    def _whole_board(self, filters: Filters, aliases: Aliases, skipped: list[Skipped]) -> BoardView:
        records = self.records.runs(filters.day, skipped)
        # Everything that the board is made of; while none of it changes, the cached board is still right.
        state = (
            aliases.identity,
            tuple((day, runs.identity) for day, runs in records.items()),
            tuple(skipped),
            self.attempts.identity(),
        )
        cached = self._boards.get(filters)
        if cached is not None and cached[0] == state:
            return cached[1]
        groups = {day: runs.groups for day, runs in records.items()}
        name_of = merge_spellings(aliases, _count_names(groups))
        ends = self.attempts.ends(filters.day, skipped)
        board = rank(groups, filters, name_of, ends, self.clock.now())
        withdrawn = _count_withdrawn(self.records.run_counts(filters.day, []), groups, filters.phase, name_of)
        board = replace(board, withdrawn=withdrawn)
        names = sorted({row.llm for row in board.rows})  # a model may have ranked and claimed times
        view = BoardView(board, board.rows, skipped, self.records.days(), names)
        # Boards are made in threads, but without a lock: at worst one is computed twice.
        if len(self._boards) >= MAX_BOARDS:
            self._boards.clear()
        self._boards[filters] = state, view
        return view

    def times_now(self, filters: Filters, board: Board) -> Callable[[Row], dict[Puzzle, list[int]]]:
        """Return a function that maps a row of a board to its sorted times by puzzle. Blocks."""
        records = {day: runs.groups for day, runs in self.records.runs(filters.day, []).items()}
        name_of = merge_spellings(self._aliases([]), _count_names(records))
        tallies = tally(records, filters, name_of, board.measure)
        ranked = tallies[board.grade] if board.grade else merge(tallies[VERIFIED], tallies[MEASURED])

        def times_of(row: Row) -> dict[Puzzle, list[int]]:
            models = tallies[CLAIMED] if row.unranked == CLAIMED else ranked
            return {puzzle: runs.ordered for puzzle, runs in models.get(row.llm, {}).items()}

        return times_of

    async def history(
        self, filters: Filters, limit: int, older: int | None, client: int | None = None
    ) -> HistoryView:
        """List single runs, newest first; the work depends on the page, once changed files are read."""
        if client is not None:
            await self.settled(client)
        view = await self.run_in_thread(self.history_now, filters, limit, older)
        return replace(view, skipped=_shown(view.skipped)) if view.skipped else view

    def history_now(self, filters: Filters, limit: int, older: int | None = None) -> HistoryView:
        """Blocking version of `history`."""
        skipped: list[Skipped] = []
        aliases = self._aliases(skipped)
        days = self.records.run_counts(filters.day, skipped)
        state = (aliases.identity, tuple((day, counts.revision) for day, counts in days.items()))
        cached = self._chosen.get(filters)
        if cached is None or cached[0] != state:
            cached = state, self._choose_runs(filters, aliases, days)
            if len(self._chosen) >= MAX_BOARDS:
                self._chosen.clear()
            self._chosen[filters] = cached
        chosen = cached[1]
        cut = cut_page(chosen.total, limit, older)
        runs = []
        if cut.size:
            runs = self.records.newest_runs({day: days[day] for day in chosen.days}, chosen.filter, cut)
        page = Page([as_run(day, entry) for day, entry in runs], chosen.total, cut.older or None)
        return HistoryView(page, chosen.known, self.records.days(), skipped)

    def _choose_runs(self, filters: Filters, aliases: Aliases, days: Mapping[int, DayCounts]) -> _Chosen:
        """Find the runs that pass the filters, from their counts alone."""
        names: Counter[str] = Counter()
        for day_counts in days.values():
            for group, count in day_counts.counts.items():
                names[group.llm] += count
        canonical = {name: canonical_name(name) for name in names}
        totals: Counter[str] = Counter()
        for name, count in names.items():
            totals[canonical[name]] += count
        name_of = merge_spellings(aliases, totals)
        known = sorted({name_of(name) for name in totals})
        llms = None
        if filters.llm is not None:
            mains = match_names(aliases.look_up(filters.llm), known)
            llms = frozenset(name for name in names if name_of(canonical[name]) in mains)
        run_filter = RunFilter(filters.phase, filters.measure, filters.grade, llms)
        is_all = run_filter == RunFilter()
        counts = {
            day: sum(
                count for group, count in day_counts.counts.items() if is_all or run_filter.passes(group)
            )
            for day, day_counts in days.items()
        }
        return _Chosen(
            run_filter, [day for day, count in counts.items() if count], sum(counts.values()), known
        )

    def runs_now(self, filters: Filters) -> tuple[list[Run], list[Skipped]]:
        """List every run that passes the filters, newest first. Blocks."""
        matches, _, skipped = self._find_entries(filters)
        return [as_run(day, entry) for day, entry in matches], skipped

    def attempts_now(self, filters: Filters) -> tuple[list[Attempt], list[Skipped]]:
        """List every attempt that passes the filters, failed ones too, newest first. Blocks."""
        matches, is_wanted, skipped = self._find_entries(filters)
        now = self.clock.now()
        failures = [
            failed_attempt(end)
            for end in self.attempts.ends(filters.day, skipped)
            if end.is_over(now)
            and end.step.outcome not in {"solved", "unchecked"}
            and filters.phase in {None, end.step.phase}
            and filters.measure in {None, end.step.measure}
            and filters.grade in {None, end.started.grade}
            and is_wanted(end.step.llm)
        ]
        failures.sort(
            key=lambda row: row.attempt or ""
        )  # two at one moment: in any order, but always the same
        rows = [recorded_attempt(day, entry) for day, entry in matches] + failures
        return sorted(rows, key=lambda row: moment_of(row.timestamp), reverse=True), skipped

    def _find_entries(
        self, filters: Filters
    ) -> tuple[list[tuple[int, Entry]], Callable[[str], bool], list[Skipped]]:
        """Return the records that pass the filters, a test for names, and the files that were skipped."""
        skipped: list[Skipped] = []
        aliases = self._aliases(skipped)
        days = layout.DAYS if filters.day is None else (filters.day,)
        # A corrupt file raises if its day was asked for; otherwise it is skipped and named.
        entries = self.records.entries(days, skipped if filters.day is None else None)
        names = Counter(entry.llm for day_entries in entries.values() for entry in day_entries)
        canonical = Counter[str]()
        for name, n in names.items():
            canonical[canonical_name(name)] += n
        name_of = merge_spellings(aliases, canonical)
        known = sorted({name_of(name) for name in canonical})
        llms = None if filters.llm is None else match_names(aliases.look_up(filters.llm), known)

        def is_wanted(llm: str) -> bool:
            return llms is None or name_of(canonical_name(llm)) in llms

        return find_runs(entries, filters, is_wanted), is_wanted, skipped

    async def changes(self) -> object:
        """Return a value that changes with the records in the database; None if they are in files."""
        if self.database is None:
            return None
        from .database.records import DatabaseRecords  # lazy: PostgreSQL, 14 ms

        return await DatabaseRecords(self.database, self.year).changes()

    async def llms(self) -> list[str]:
        """List the models that have records, by their main names."""
        boards = [await self.board(Filters(measure=measure)) for measure in ("solving", "execution")]
        return sorted({fold_name(name): name for view in boards for name in view.known}.values())

    def _aliases(self, skipped: list[Skipped]) -> Aliases:
        if self.database is not None:
            from .database.records import DatabaseRecords  # lazy: PostgreSQL, 14 ms

            return DatabaseRecords(self.database, self.year).aliases()
        return read_or_skip(self.folders.aliases, skipped)

    async def close(self) -> None:
        """Finish the writes under way."""
        if "recorder" in self.__dict__:
            await self.recorder.close()


def _count_names(records: Mapping[int, Mapping[Group, Runs]]) -> Counter[str]:
    """Count the runs of each recorded name."""
    names: Counter[str] = Counter()
    for groups in records.values():
        for group, runs in groups.items():
            names[group.llm] += len(runs.ordered)
    return names


def _count_withdrawn(
    counts: Mapping[int, DayCounts],
    groups: Mapping[int, Mapping[Group, Runs]],
    phase: int | None,
    name_of: Callable[[str], str],
) -> dict[str, int]:
    """Count the withdrawn runs of each model: those that are there and do not count."""
    missing: Counter[str] = Counter()
    for day, day_counts in counts.items():
        for group, n in day_counts.counts.items():
            if phase in {None, group.phase}:
                missing[name_of(canonical_name(group.llm))] += n
        for group, runs in groups.get(day, {}).items():
            if phase in {None, group.phase}:
                missing[name_of(group.llm)] -= len(runs.ordered)
    return {llm: n for llm, n in sorted(missing.items()) if n > 0}


def open_workspace(
    settings: AocSettings,
    clock: Clock | None = None,
    database: postgres.Database | None = None,
    lock_wait: float = LOCK_SECONDS,
) -> Workspace:
    """Open the folders of the settings, with records in the database if there is one."""
    folders = find_folders(settings, os.getcwd())
    key: RecordKey = "speed_ms" if settings.record_keys == "speed_ms" else "speedMs"

    def key_file() -> Path:
        return settings.grade_key_file or open_state(settings, "aoc") / "grade.key"

    seals = Seals(key_file, settings.year)
    clock = clock or SystemClock()
    return Workspace(
        settings.year, folders, lock_wait, clock, key, seals=seals, database=database, caller=settings.caller
    )


def _shown(skipped: list[Skipped]) -> list[Skipped]:
    """Return the skipped files as the caller may see them."""
    return [
        Skipped(hide_folder(file.file, file.file), hide_folder(file.problem, file.file)) for file in skipped
    ]
