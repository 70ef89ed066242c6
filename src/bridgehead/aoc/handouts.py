"""Handouts: which callers have been given the text or the input of which puzzle, by this process.

A time counts as measured only if its caller saw nothing of the phase before the clock started. A caller is
the authenticated principal; over stdio the process serves one caller. Attempts are also stored, so every
process knows which puzzles they gave out.
"""

from __future__ import annotations

MAX_CALLERS = 10_000
"""Callers that are remembered; the oldest are forgotten first."""


class Handouts:
    """The phases that each caller has been given."""

    def __init__(self) -> None:
        self._given: dict[str | None, set[tuple[int, int]]] = {}

    def note(self, caller: str | None, day: int, *phases: int) -> None:
        """Remember that a caller has been given phases of a day."""
        if caller not in self._given and len(self._given) >= MAX_CALLERS:
            del self._given[next(iter(self._given))]
        self._given.setdefault(caller, set()).update((day, phase) for phase in phases)

    def has(self, caller: str | None, day: int, phase: int) -> bool:
        """Return whether a caller has been given a phase."""
        return (day, phase) in self._given.get(caller, ())
