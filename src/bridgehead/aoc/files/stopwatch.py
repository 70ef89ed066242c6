"""Stopwatch: times attempts with the server's clock, over restarts and several processes. Blocks.

The time of an attempt that began in this process is taken from the monotonic clock; of any other one from
its timestamp on disk, since nothing better survives a process.
"""

from __future__ import annotations

import secrets
import time

from bridgehead.runtime.errors import NotFound
from bridgehead.runtime.timing import Clock

from .attempts import ENDED, Attempts, Outcome, Step
from .entries import SOLVING, Measure, format_timestamp

MAX_RUNNING = 10_000
"""Attempts whose start is kept in memory; of older ones the timestamp counts."""


class Stopwatch:
    """The attempts that run."""

    def __init__(self, attempts: Attempts, clock: Clock) -> None:
        self._attempts = attempts
        self._clock = clock
        self._began: dict[str, float] = {}

    def start(self, day: int, phase: int, llm: str) -> Step:
        """Begin an attempt; it is on the disk when this returns."""
        step = self._step(secrets.token_hex(6), "started", llm, phase, SOLVING)
        self._attempts.append(day, [step])
        if len(self._began) >= MAX_RUNNING:
            self._began.clear()
        self._began[step.attempt] = time.monotonic()
        return step

    def look_up(self, attempt: str) -> tuple[int, Step, int]:
        """Return an attempt's day, its first step and how many milliseconds it has taken.

        Raises `NotFound`.
        """
        now, monotonic = self._clock.now(), time.monotonic()
        day, steps = self._attempts.find(attempt)
        if not steps:
            raise NotFound(f"There is no attempt {attempt!r}.", next_step="start_attempt begins one.")
        if steps[-1].outcome in ENDED:
            raise NotFound(
                f"Attempt {attempt!r} has ended ({steps[-1].outcome}).",
                next_step="start_attempt begins another.",
            )
        began = self._began.get(attempt)
        seconds = monotonic - began if began is not None else now - steps[0].seconds
        return day, steps[0], max(1, round(seconds * 1000))

    def note(
        self,
        day: int,
        started: Step,
        outcome: Outcome,
        milliseconds: int,
        tokens: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Write down what became of an attempt."""
        step = self._step(started.attempt, outcome, started.llm, started.phase, started.measure)
        step.time, step.tokens, step.cost_usd = milliseconds, tokens, cost_usd
        self._attempts.append(day, [step])
        if outcome in ENDED:
            self._began.pop(started.attempt, None)

    def note_run(
        self, day: int, phase: int, llm: str, outcome: Outcome, milliseconds: int, measure: Measure
    ) -> None:
        """Write down a run that was started and timed by a command."""
        step = self._step(secrets.token_hex(6), outcome, llm, phase, measure)
        step.time = milliseconds
        self._attempts.append(day, [step])

    def _step(self, attempt: str, outcome: Outcome, llm: str, phase: int, measure: Measure) -> Step:
        now = self._clock.now()
        return Step(attempt, outcome, llm, phase, format_timestamp(now), now, measure)
