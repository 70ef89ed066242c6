"""Handouts: which callers have been given the text or the input of which puzzle.

A time counts as measured only if its caller saw nothing of the phase before the clock started. A caller is a
token or, without authentication, an address; over stdio the process serves one caller. Over HTTP, handouts
are also stored among the attempts, so that every process knows them; this memory avoids storing them twice.
"""

from __future__ import annotations

MAX_CALLERS = 10_000
"""Callers that are remembered; the oldest are forgotten first."""


class Handouts:
    """The phases that each caller has been given."""

    def __init__(self) -> None:
        self._given: dict[str, set[tuple[int, int]]] = {}

    def record(self, caller: str, day: int, *phases: int) -> list[int]:
        """Remember that a caller has been given phases of a day; return those that are new."""
        if caller not in self._given and len(self._given) >= MAX_CALLERS:
            del self._given[next(iter(self._given))]
        handed_out = self._given.setdefault(caller, set())
        new = [phase for phase in phases if (day, phase) not in handed_out]
        handed_out.update((day, phase) for phase in new)
        return new

    def has(self, caller: str, day: int, phase: int) -> bool:
        """Return whether a caller has been given a phase."""
        return (day, phase) in self._given.get(caller, ())
