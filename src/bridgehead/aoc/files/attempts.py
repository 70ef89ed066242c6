"""Attempts: which model tried which puzzle, how it ended and how long it took, one file per day. Blocks.

Records say how fast a solution was; attempts say how often there was one. They have files of their own,
`attempts/day01.jsonl`, one step per line, so that the original program never counts a failure as a time. An
attempt that began in this process is timed by the monotonic clock; any other one by its timestamp.

An attempt ends once: `AttemptStore.advance` decides in one place, under a lock that all processes share, and
the first end stands. The record of its time is written after that, once for each attempt; after a crash in
between, the next start writes it, or a caller that repeats the call.
"""

# ruff: noqa: PTH118 - one way to write a path in this package

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from bridgehead.runtime import durable
from bridgehead.runtime.errors import NotFound, StorageError
from bridgehead.runtime.timing import Clock

from . import layout
from .entries import CLAIMED, EXECUTION, SOLVING, Details, Grade, Measure, Name, format_timestamp
from .filters import Skipped
from .instructions import Verdict
from .layout import Identity, Phase, identify
from .locking import FolderLock
from .seals import Seals
from .snapshot import read_snapshot

MAX_BYTES = 64 * 1024 * 1024
ROOM_BYTES = 1024 * 1024
"""Kept free for the ends of attempts that have begun: no attempt starts in a file that is fuller."""
_KNOWN_BYTES = 256
OPEN_SECONDS = 24 * 3600.0
"""An attempt not finished within a day counts as given up."""

AttemptOutcome = Literal["started", "wrong", "solved", "unchecked", "failed", "given"]
"""After `wrong` the attempt goes on; the next three end it. `given` notes a puzzle that was handed out
outside of any attempt."""
ENDED = frozenset({"solved", "unchecked", "failed"})
ANSWERED = frozenset({"wrong", "solved", "unchecked"})
"""Outcomes of steps that hand in an answer."""
MAX_TRIES = 5
"""Answers that an attempt may hand in; the site discourages guessing with waiting times instead."""


class AttemptStep(Struct, omit_defaults=True):
    """One line: an attempt began, got a wrong answer, or ended."""

    attempt: str
    outcome: AttemptOutcome
    llm: Name
    phase: Phase
    timestamp: str
    seconds: float
    """The timestamp in seconds since the epoch."""
    measure: Measure = SOLVING
    time: int | None = None
    """How long the attempt took, in milliseconds."""
    tokens: int | None = None
    cost_usd: float | None = None
    verdict: Verdict | None = None
    """The verdict on the step's answer; None without an answer, and in steps of version 0.2."""
    grade: Grade = CLAIMED
    """At the start, the grade that the attempt can reach; at its end, the grade of its time."""
    caller: str | None = None
    """Only in a start: a token, an address (without authentication), or over stdio the process."""
    seal: str | None = None
    """Proves the grade in a file; nothing outside of `Attempts` sees it."""
    details: Details | None = None
    """At a start, the token that began it over HTTP; at an end, the agent that made the attempt."""

    @property
    def owner(self) -> str | None:
        """The token that began the attempt; None if callers could not be told apart."""
        return None if self.details is None else self.details.caller

    @property
    def sealed_fields(self) -> tuple[Any, ...]:
        """What a seal covers. Steps of version 0.3 have no details."""
        fields = astuple(replace(self, seal=None))
        return fields if self.details is not None else fields[:-1]


_decode = msgspec.json.Decoder(AttemptStep).decode


class AttemptStore(Protocol):
    """Attempts in files (`Attempts`) or in PostgreSQL (`DatabaseAttempts`). Blocks."""

    def append(self, day: int, steps: list[AttemptStep]) -> None:
        """Store steps durably."""
        ...

    def advance(self, day: int, step: AttemptStep) -> list[AttemptStep]:
        """Store a step unless the attempt has ended; return the attempt's steps. One process at a time."""
        ...

    def find(self, attempt: str) -> tuple[int, list[AttemptStep]]:
        """Return the day and the steps of one attempt; no steps if it does not exist."""
        ...

    def steps(self, day: int) -> list[AttemptStep]:
        """Return the steps of a day, oldest first."""
        ...

    def identity(self) -> object:
        """Return a value that changes when any attempt does."""
        ...

    def ends(self, day: int | None, skipped: list[Skipped]) -> list[AttemptEnd]:
        """Return every attempt of a day, or of all days, with its last step.

        A file that cannot be read raises if its day was asked for; otherwise it is added to `skipped`.
        """
        ...


class Attempts:
    """The attempts of one year in files."""

    def __init__(
        self, folder: str, lock_wait: float, seals: Seals | None = None, anchor: layout.Anchor | None = None
    ) -> None:
        self._folder = folder
        self._lock = FolderLock(folder, lock_wait, anchor)
        self._seals = seals or Seals()
        self._read: dict[int, _ReadSteps] = {}

    def append(self, day: int, steps: list[AttemptStep]) -> None:
        """Write steps to the disk."""
        path = self._path(day)
        with self._locked(path):
            size = getattr(identify(path), "size", 0)
            if size > MAX_BYTES - ROOM_BYTES and any(step.outcome in {"started", "given"} for step in steps):
                raise StorageError(
                    f"{path} is full: {size:,} of {MAX_BYTES:,} bytes. No attempt was started.",
                    next_step="Move it away to begin a new one.",
                    path=path,
                )
            self._write(day, path, steps)

    def advance(self, day: int, step: AttemptStep) -> list[AttemptStep]:
        """Write a step unless the attempt has ended; return the attempt's steps."""
        path = self._path(day)
        with self._locked(path):
            known = [earlier for earlier in self.steps(day) if earlier.attempt == step.attempt]
            new = steps_to_store(known, step)
            if new:
                self._write(day, path, new)
            return known + new

    def _path(self, day: int) -> str:
        return os.path.join(self._folder, layout.attempts_name(day))

    @contextmanager
    def _locked(self, path: str) -> Iterator[None]:
        try:
            with self._lock.held(path):
                yield
        except OSError as failure:
            raise StorageError(
                f"{path} cannot be written: {failure.strerror or failure}.",
                next_step="Make room or give this user the right to write there, then try again.",
                path=path,
            ) from failure

    def _write(self, day: int, path: str, steps: list[AttemptStep]) -> None:
        sealed = (
            step if step.grade == CLAIMED else replace(step, seal=self._seals.sign(day, *step.sealed_fields))
            for step in steps
        )
        data = b"".join(msgspec.json.encode(step) + b"\n" for step in sealed)
        with Path(path).open("ab+") as file:
            # A killed writer may have left half a line: start a new one, so that only that step is lost.
            if file.tell():
                file.seek(-1, os.SEEK_END)
                data = data if file.read(1) == b"\n" else b"\n" + data
            file.write(data)
            file.flush()
            durable.flush(file.fileno())

    def steps(self, day: int) -> list[AttemptStep]:
        """Return the steps of a day, oldest first; skip lines that are not steps."""
        path = self._path(day)
        identity = identify(path)
        if identity is None:
            return []
        known = self._read.get(day)
        if known is not None and known.identity == identity:
            return known.steps
        # The file only grows, so read on where the last read ended. Its last bytes show if it is the same.
        before = known or _ReadSteps(identity, 0, b"", [])
        stored = read_snapshot(path, MAX_BYTES, before.end - len(before.last))
        if stored is not None and not stored.data.startswith(before.last):
            before = _ReadSteps(identity, 0, b"", [])
            stored = read_snapshot(path, MAX_BYTES)
        if stored is None:
            return []
        data = stored.data[len(before.last) :]
        data = data[: data.rfind(b"\n") + 1]  # a line without its end is half written
        steps = list(_decode_lines(data))
        for step in steps:
            if step.grade != CLAIMED and not self._seals.fits(step.seal, day, *step.sealed_fields):
                step.grade = CLAIMED  # edited, or sealed with another key
            step.seal = None
        steps = before.steps + steps
        last = (before.last + data)[-_KNOWN_BYTES:]
        self._read[day] = _ReadSteps(stored.identity, before.end + len(data), last, steps)
        return steps

    def find(self, attempt: str) -> tuple[int, list[AttemptStep]]:
        """Return the day and the steps of one attempt; no steps if it does not exist."""
        problem: StorageError | None = None
        for day in layout.DAYS:
            try:
                steps = [step for step in self.steps(day) if step.attempt == attempt]
            except StorageError as failure:  # the attempt may be of another day
                problem = failure
                continue
            if steps:
                return day, steps
        if problem is not None:
            raise problem
        return 0, []

    def identity(self) -> tuple[Identity | None, ...]:
        """Return a value that changes when any attempt does."""
        names = map(layout.attempts_name, layout.DAYS)
        return tuple(identify(os.path.join(self._folder, name)) for name in names)

    def ends(self, day: int | None, skipped: list[Skipped]) -> list[AttemptEnd]:
        """Return every attempt of a day, or of all days, with its last step."""
        ends: dict[str, AttemptEnd] = {}
        for number in layout.DAYS if day is None else (day,):
            try:
                steps = self.steps(number)
            except StorageError as problem:
                if day is not None:
                    raise
                skipped.append(Skipped(self._path(number), problem.message))
                continue
            for step in steps:
                before = ends.get(step.attempt)
                ends[step.attempt] = AttemptEnd(
                    number,
                    step,
                    (0 if before is None else before.wrong) + (step.outcome == "wrong"),
                    step if before is None else before.started,
                )
        return list(ends.values())


class _ReadSteps(NamedTuple):
    """The steps of a day up to an offset of its file."""

    identity: Identity
    end: int
    last: bytes
    """The bytes before that offset."""
    steps: list[AttemptStep]


class AttemptEnd(NamedTuple):
    """The last step of an attempt, and what came before it."""

    day: int
    step: AttemptStep
    wrong: int
    """Wrong answers."""
    started: AttemptStep
    """The first step: who began the attempt, when, and which grade it could reach."""

    def is_over(self, now: float) -> bool:
        """Return whether the attempt has ended or was abandoned."""
        return self.step.outcome in ENDED or (
            self.step.outcome != "given" and now - self.step.seconds > OPEN_SECONDS
        )


def steps_to_store(steps: list[AttemptStep], step: AttemptStep) -> list[AttemptStep]:
    """Return the steps to store: none once the attempt has ended; with the last wrong try, also its end."""
    if steps and steps[-1].outcome in ENDED:
        return []
    wrong = sum(earlier.outcome == "wrong" for earlier in steps)
    if step.outcome == "wrong" and wrong + 1 >= MAX_TRIES:
        return [step, replace(step, outcome="failed")]
    return [step]


def _decode_lines(data: bytes) -> Iterable[AttemptStep]:
    for line in data.split(b"\n"):
        try:
            yield _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # the half line of a writer that was killed


def find_wrong_lines(path: str) -> list[int]:
    """Return the numbers of lines that are not steps. The last line is ignored: it may be half written."""
    stored = read_snapshot(path, MAX_BYTES)
    lines = [] if stored is None else stored.data.split(b"\n")[:-1]
    return [number for number, line in enumerate(lines, start=1) if line and not list(_decode_lines(line))]


MAX_RUNNING = 10_000
"""Attempts whose start is kept in memory; older ones are timed by their timestamp."""


class TimedAttempt(NamedTuple):
    """An attempt, and how long it has taken so far."""

    day: int
    steps: list[AttemptStep]
    milliseconds: int
    is_backwards: bool = False
    """Whether the clock says that it ended before it began, so that the time means nothing."""

    @property
    def started(self) -> AttemptStep:
        """The first step."""
        return self.steps[0]

    @property
    def end(self) -> AttemptStep | None:
        """The first step that ended the attempt; version 0.2 could store several."""
        return next((step for step in self.steps if step.outcome in ENDED), None)

    @property
    def wrong(self) -> int:
        """How many wrong answers were handed in."""
        return sum(step.outcome == "wrong" for step in self.steps)

    @property
    def tries(self) -> int:
        """How many answers were handed in."""
        end = self.end
        return self.wrong + (end is not None and end.outcome in {"solved", "unchecked"})


class Stopwatch:
    """Times attempts and stores their steps."""

    def __init__(self, attempts: AttemptStore, clock: Clock) -> None:
        self._attempts = attempts
        self._clock = clock
        self._began: dict[str, float] = {}

    def start(
        self,
        day: int,
        phase: int,
        llm: str,
        grade: Grade = CLAIMED,
        caller: str | None = None,
        owner: str | None = None,
    ) -> AttemptStep:
        """Begin an attempt that can reach a grade; it is durable when this returns."""
        step = self._step(secrets.token_hex(6), "started", llm, phase, SOLVING)
        step.grade, step.caller = grade, caller
        step.details = None if owner is None else Details(caller=owner)
        self._attempts.append(day, [step])
        # Nothing is lost by this: those attempts are timed by their timestamps.
        if len(self._began) >= MAX_RUNNING:
            self._began.clear()
        self._began[step.attempt] = time.monotonic()
        return step

    def look_up(self, attempt: str) -> TimedAttempt:
        """Find an attempt and read the clock. Raises `NotFound`."""
        # The clock is read before the file: reading must not count as solving time.
        now, monotonic = self._clock.now(), time.monotonic()
        day, steps = self._attempts.find(attempt)
        if not steps:
            raise NotFound(f"There is no attempt {attempt!r}.", next_step="start_attempt begins one.")
        began = self._began.get(attempt)
        seconds = monotonic - began if began is not None else now - steps[0].seconds
        return TimedAttempt(day, steps, max(1, round(seconds * 1000)), is_backwards=seconds < 0)

    def hand_in(
        self,
        attempt: TimedAttempt,
        verdict: Verdict | None,
        tokens: int | None = None,
        cost_usd: float | None = None,
        *,
        is_doubtful: bool = False,
    ) -> TimedAttempt:
        """Store the verdict on an answer, if any; return the attempt with its first end.

        The time of a right answer is claimed if it is doubtful: guessed, seen before, or badly timed.
        """
        started = attempt.started
        outcomes: dict[Verdict | None, AttemptOutcome] = {
            None: "failed",
            "right": "solved",
            "unknown": "unchecked",
        }
        step = self._step(
            started.attempt, outcomes.get(verdict, "wrong"), started.llm, started.phase, SOLVING
        )
        step.time, step.tokens, step.cost_usd, step.verdict = attempt.milliseconds, tokens, cost_usd, verdict
        step.grade = started.grade if step.outcome == "solved" and not is_doubtful else CLAIMED
        advanced = attempt._replace(steps=self._attempts.advance(attempt.day, step))
        if advanced.end is not None:
            self._began.pop(started.attempt, None)
        return advanced

    def record_handout(self, day: int, phases: list[int], caller: str) -> None:
        """Store that a caller was given phases outside of an attempt, unless that is already stored."""
        known = {step.phase for step in self._attempts.steps(day) if step.caller == caller}
        steps = [
            self._step(secrets.token_hex(6), "given", caller, phase, SOLVING)
            for phase in phases
            if phase not in known
        ]
        for step in steps:
            step.caller = caller
        if steps:
            self._attempts.append(day, steps)

    def record_run(
        self,
        day: int,
        phase: int,
        llm: str,
        outcome: AttemptOutcome,
        milliseconds: int,
        grade: Grade,
        *,
        caller: str | None = None,
        is_wrong: bool = False,
    ) -> None:
        """Store a finished run of a program timed by a command; a wrong answer counts as a try."""
        end = self._step(secrets.token_hex(6), outcome, llm, phase, EXECUTION)
        end.time, end.grade = milliseconds, grade
        steps = [replace(end, outcome="wrong", caller=caller), end] if is_wrong else [end]
        self._attempts.append(day, steps)

    def _step(
        self, attempt: str, outcome: AttemptOutcome, llm: str, phase: int, measure: Measure
    ) -> AttemptStep:
        now = self._clock.now()
        return AttemptStep(attempt, outcome, llm, phase, format_timestamp(now), now, measure)
