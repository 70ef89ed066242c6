"""Board: types of a ranking; `standings` computes it.

Separate because the list of tools needs the types at start-up, and `standings` is slow to import.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..files.entries import Grade, Measure


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
