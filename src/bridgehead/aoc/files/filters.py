"""Filters: which runs a query is about."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from .entries import Grade, Group, Measure

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


class RunFilter(Struct, frozen=True):
    """Which runs a page of a history has; None means all."""

    phase: int | None = None
    measure: Measure | None = None
    grade: Grade | None = None
    llms: frozenset[str] | None = None
    """Names as they were recorded."""

    def passes(self, group: Group) -> bool:
        """Return whether runs of a group are listed; its name is as recorded."""
        return (
            self.phase in {None, group.phase}
            and self.measure in {None, group.measure}
            and self.grade in {None, group.grade}
            and (self.llms is None or group.llm in self.llms)
        )


class Skipped(Struct, frozen=True):
    """A file that was left out of an answer because it could not be read."""

    file: str
    problem: str
