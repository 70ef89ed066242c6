"""Board: types of a ranking; `standings` computes it.

Separate because the list of tools needs the types at start-up, and `standings` is slow to import.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ..files.entries import Measure

Order = Literal["speed", "solve_rate"]


class Filters(Struct, frozen=True):
    """Which runs count; None means all. Without a measure the board picks one."""

    day: int | None = None
    phase: int | None = None
    llm: str | None = None
    measure: Measure | None = None
    order: Order = "speed"


def make_filters(
    day: int | UnsetType = UNSET,
    phase: int | UnsetType = UNSET,
    llm: str | UnsetType = UNSET,
    measure: Measure | UnsetType = UNSET,
    order: Order = "speed",
) -> Filters:
    """Make filters from optional arguments of a call; UNSET is falsy and becomes None."""
    return Filters(day or None, phase or None, llm or None, measure or None, order)


class AttemptCounts(Struct, frozen=True):
    """How a model's attempts ended."""

    attempts: int = 0
    solved: int = 0
    failed: int = 0
    tokens: float | None = None
    """Mean over the attempts that report tokens."""
    cost_usd: float | None = None

    @property
    def solve_rate(self) -> float | None:
        """Share of solved ones among the attempts whose answer was checked."""
        checked = self.solved + self.failed
        return self.solved / checked if checked else None


class Row(Struct, frozen=True, kw_only=True):
    """One model on the board; times are in milliseconds."""

    rank: int
    llm: str
    slower: float | None
    """How many times slower than the leader; None without a shared puzzle."""
    low: float | None
    high: float | None
    provisional: bool
    puzzles: int
    shared: int
    """Puzzles that the leader ran too."""
    n: int
    claimed: int
    """Runs whose time a model reported; the others were measured by a clock."""
    best: int | None
    median: float | None
    """Over several puzzles, the geometric mean of their medians."""
    mean: float | None
    stdev: float | None
    p95: int | None
    attempts: int
    solved: int
    solve_rate: float | None
    tokens: float | None
    cost_usd: float | None


class Skipped(Struct, frozen=True):
    """A file that was left out of an answer because it could not be read."""

    file: str
    problem: str


class Board(Struct, frozen=True):
    """All models, ranked."""

    rows: list[Row]
    measure: Measure
    is_even: bool
    """Whether all models ran the same puzzles."""
    other_runs: int
    """Runs of the other measure, which this board does not show."""
