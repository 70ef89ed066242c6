"""Board: types of a ranking; `standings` computes it."""

from __future__ import annotations

from msgspec import Struct

from ..files.entries import Grade, Measure
from .comparison import Unit


class Row(Struct, frozen=True, kw_only=True):
    """One model on the board; times are in milliseconds."""

    rank: int | None
    """The best rank that the attempts allow for; None if the model is not ranked."""
    rank_high: int | None
    """The worst rank that the attempts allow for."""
    llm: str
    unranked: str | None
    """Why the model has no rank."""
    slower: float | None
    """Time per solved answer, as a multiple of the leader's, over the puzzles that both tried."""
    low: float | None
    high: float | None
    per_solved: float | None
    """Time per solved answer over the model's own puzzles, failures included; None if none is solved."""
    puzzles: int
    """Tried ones, solved or not."""
    n: int
    """Runs that have a time."""
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
    solved: int
    """Checked attempts that were solved. Claimed times are not checked."""
    failed: int
    wrong: int
    """Wrong answers handed in."""
    solve_rate: float | None
    tokens: float | None
    """Mean of an attempt, which is one phase."""
    cost_usd: float | None
    """Mean of an attempt."""


class Board(Struct, frozen=True):
    """All models: ranked ones, then others by their time per solved answer, then claimed times."""

    rows: list[Row]
    measure: Measure
    grade: Grade | None
    """The only grade on the board; None if verified and measured runs are ranked together."""
    unit: Unit
    """The scope of a claim: similar days or, with one or two days, further attempts at these puzzles."""
    left_out: int
    """Models with too few runs to be shown among so many."""
    other_runs: int
    """How many runs have the other measure, which this board does not show."""
