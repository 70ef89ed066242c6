"""Progress: of a benchmark, as a live table on a terminal or as lines in a pipe."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from ..ranking.wording import count, dollars, duration
from .agent_run import Assignment
from .benchmark import Plan
from .journal import RunResult

MAX_SHOWN = 300
"""Bytes of an agent's output that its last line is looked for in."""

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


class LiveProgress:
    """A table that is redrawn several times a second; for terminals."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._results: list[RunResult] = []
        self._current: Assignment | None = None
        self._began = time.monotonic()
        self._live: Live

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(get_renderable=self.draw, refresh_per_second=4)
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._current = None
        self._live.__exit__(kind, error, trace)

    def show(self, results: list[RunResult], current: Assignment | None) -> None:
        """Show the finished runs, and the one that starts."""
        self._results, self._current, self._began = list(results), current, time.monotonic()

    def warn(self, text: str) -> None:
        """Print a warning above the table."""
        self._live.console.print(text, markup=False, highlight=False)

    def draw(self) -> Table:
        """Make the table of the current state."""
        table = progress_table(self._plan, self._results)
        if self._current is not None:
            spent = duration((time.monotonic() - self._began) * 1000)
            current = self._current
            name = f"{current.agent.name}, day {current.day}, run {current.repeat}"
            table.caption = f"{name}: {spent} so far"
        return table


class PlainProgress:
    """A line for each run; for pipes and logs."""

    def __init__(self, plan: Plan, out: TextIO | None = None) -> None:
        self._total = len(plan.assignments)
        self._out = out or sys.stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, results: list[RunResult], current: Assignment | None) -> None:
        """Write a line when a run has ended."""
        if current is None and results:
            last = results[-1]
            self._out.write(f"{len(results)} of {self._total}: {run_text(last)}\n")
            self._out.flush()

    def warn(self, text: str) -> None:
        """Write a line."""
        self._out.write(f"{text}\n")
        self._out.flush()


def run_text(result: RunResult) -> str:
    """Describe a run in one line."""
    phases = []
    for phase in result.phases:
        took = "" if phase.milliseconds is None else f" in {duration(phase.milliseconds)}"
        wrong = f", {count(phase.wrong, 'wrong answer')}" if phase.wrong else ""
        phases.append(f"phase {phase.phase} {phase.outcome}{took}{wrong}")
    cost = "" if result.cost_usd is None else f"; {dollars(result.cost_usd)}"
    problem = f"; {result.problem}" if result.problem else ""
    if result.is_broken:
        again = "is not tried again" if result.is_given_up else "will be run again next time"
        times = max(1, result.times_broken)
        problem = f"; broken {times}×, status {result.status}: {last_line(result)}; it {again}"
    return f"{result.agent}, day {result.day}, run {result.repeat}: {'; '.join(phases)}{cost}{problem}"


def last_line(result: RunResult) -> str:
    """Return the last line that an agent has printed, on standard error if there is any."""
    transcript = Path(result.transcript)
    for path in (transcript.with_suffix(".err"), transcript):
        try:
            lines = path.read_bytes()[-MAX_SHOWN:].decode(errors="replace").split("\n")
        except OSError:
            continue
        line = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if line:
            return "".join(character for character in line if character.isprintable())
    return "it printed nothing"


def progress_table(plan: Plan, results: list[RunResult]) -> Table:
    """Make the table: one row for each agent."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", caption_justify="left")
    for heading in ("agent", "runs", "solved / failed", "wrong", "tokens in all", "cost in all"):
        table.add_column(heading, justify="left" if heading == "agent" else "right")
    each = len(plan.days) * plan.repeats
    for agent in plan.agents:
        runs = [result for result in results if result.agent == agent.name]
        phases = [phase for run in runs for phase in run.tried]
        solved = sum(phase.outcome == "solved" for phase in phases)
        tokens = [run.tokens for run in runs if run.tokens is not None]
        costs = [run.cost_usd for run in runs if run.cost_usd is not None]
        cells = (
            agent.name,
            f"{len(runs)} of {each}",
            f"{solved} / {len(phases) - solved}",
            str(sum(phase.wrong for phase in phases)),
            f"{sum(tokens):,}" if tokens else "",
            dollars(sum(costs)) if costs else "",
        )
        table.add_row(*map(Text, cells))
    return table
