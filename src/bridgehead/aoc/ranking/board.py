"""Board: types of a ranking; `standings` computes it.

Separate because the list of tools needs the types at start-up, and `standings` is slow to import.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType, field

from ..files.entries import Grade, Measure

Order = Literal["speed", "solve_rate"]
Puzzle = tuple[int, int]
"""A day and a phase."""


class Filters(Struct, frozen=True):
    """Which runs count; None means all. Without a measure the board picks one."""

    day: int | None = None
    phase: int | None = None
    llm: str | None = None
    measure: Measure | None = None
    order: Order = "speed"
    grade: Grade | None = None
    """None ranks verified and measured runs, and lists claimed ones after them."""


def make_filters(
    day: int | UnsetType = UNSET,
    phase: int | UnsetType = UNSET,
    llm: str | UnsetType = UNSET,
    measure: Measure | UnsetType = UNSET,
    order: Order = "speed",
    grade: Grade | UnsetType = UNSET,
) -> Filters:
    """Make filters from optional arguments of a call; UNSET is falsy and becomes None."""
    return Filters(day or None, phase or None, llm or None, measure or None, order, grade or None)


class Tries(NamedTuple):
    """A model's attempts at one puzzle that were checked, and how many of them it solved."""

    solved: int
    attempts: int


class AttemptCounts(Struct, frozen=True):
    """How a model's attempts ended."""

    attempts: int = 0
    solved: int = 0
    failed: int = 0
    wrong: int = 0
    """Wrong answers, over all attempts."""
    tokens: float | None = None
    """Mean over the attempts that report tokens."""
    cost_usd: float | None = None
    by_puzzle: dict[Puzzle, Tries] = field(default_factory=dict)

    @property
    def solve_rate(self) -> float | None:
        """Share of solved ones among the attempts whose answer was checked."""
        checked = self.solved + self.failed
        return self.solved / checked if checked else None


class Row(Struct, frozen=True, kw_only=True):
    """One model on the board; times are in milliseconds."""

    rank: int | None
    """The best rank that the runs allow for; None if the model is not ranked."""
    rank_high: int | None
    """The worst rank that the runs allow for."""
    llm: str
    group: int | None
    """Models of different groups share no puzzle, not even through others; each group has a leader."""
    unranked: str | None
    """Why the model has no rank."""
    slower: float | None
    """Expected time for a solved answer, as a multiple of the leader's."""
    low: float | None
    high: float | None
    puzzles: int
    n: int
    verified: int
    measured: int
    claimed: int
    """Runs by grade."""
    best: int | None
    median: float | None
    """Over several puzzles, the geometric mean of their medians."""
    mean: float | None
    stdev: float | None
    p95: int | None
    attempts: int
    solved: int
    wrong: int
    """Wrong answers handed in."""
    solve_rate: float | None
    tokens: float | None
    cost_usd: float | None


class Skipped(Struct, frozen=True):
    """A file that was left out of an answer because it could not be read."""

    file: str
    problem: str


class Board(Struct, frozen=True):
    """All models: ranked ones by group, then those without a rank, then claimed times."""

    rows: list[Row]
    measure: Measure
    grade: Grade | None
    """The only grade on the board; None if verified and measured runs are ranked together."""
    unit: Literal["puzzles", "runs"]
    """The scope of a claim: similar puzzles or, with one or two puzzles, further runs of these."""
    counts_failures: bool
    """False if a ranked model has no attempts: then the ratio is of times alone."""
    left_out: int
    """Models with too few runs to be shown among so many."""
    other_runs: int
    """How many runs have the other measure, which this board does not show."""
