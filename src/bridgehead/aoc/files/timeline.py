"""Timeline: the runs of a day in the order of time, so that a page of a history reads only its lines. Pure.

For each run it keeps the moment, the group and the offsets of its line: 24 bytes instead of about 300 for a
decoded entry. Runs that are only in the journal are kept whole; there are few, and folding moves them to the
file.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from .entries import Entry, Grade, Group, Measure, moment_of
from .figures import at_rank
from .history import PageCut

MAX_FILTERED = 8
"""How many filtered orders of a day are kept."""


Span = tuple[int, int]
"""Start and end of a run's line in the file; for the journal's runs, twice the index in `pending`."""


class RunFilter(Struct, frozen=True):
    """Which runs to list; None means all."""

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


class Order(NamedTuple):
    """The moments of some runs of a day, the oldest first, and the place of each in the timeline."""

    moments: Sequence[int]
    places: Sequence[int]


class Timeline:
    """The runs of a day, withdrawn ones too. Never changed: `with_newer` makes another one."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        """The groups that occur, with names as recorded."""
        self.counts: dict[Group, int] = {}
        self.pending: list[Entry] = []
        """The journal's entries, oldest first."""
        # Parallel arrays, the oldest run first.
        self._moments = array("q")
        self._kinds = array("I")  # indexes of `groups`
        self._starts = array("I")  # a day's file has at most 64 MB
        self._ends = array("I")
        self._filtered: dict[RunFilter, Order] = {}

    def with_newer(self, entries: Sequence[Entry], spans: Sequence[Span] | None = None) -> Timeline:
        """Return the timeline with further entries, oldest first; without spans they are the journal's."""
        longer = Timeline()
        longer.groups, longer.counts = self.groups.copy(), self.counts.copy()
        longer.pending = self.pending if spans is not None else [*self.pending, *entries]
        if spans is None:
            spans = [(place, place) for place in range(len(self.pending), len(longer.pending))]
        moments = [moment_of(entry.timestamp) for entry in entries]
        kinds = _number_groups(longer.groups, entries)
        for kind, count in Counter(kinds).items():
            group = longer.groups[kind]
            longer.counts[group] = longer.counts.get(group, 0) + count
        longer._moments = self._moments + array("q", moments)
        longer._kinds = self._kinds + array("I", kinds)
        longer._starts = self._starts + array("I", [start for start, _ in spans])
        longer._ends = self._ends + array("I", [end for _, end in spans])
        # Records are nearly in order, but other programs and imports need not keep to it. The sort is stable:
        # of runs with the same moment, the later line counts as newer.
        first = bisect_right(self._moments, min(moments, default=0))
        places = range(first, len(longer._moments))
        ordered = sorted(places, key=longer._moments.__getitem__)
        if ordered != list(places):
            for column in (longer._moments, longer._kinds, longer._starts, longer._ends):
                column[first:] = array(column.typecode, [column[place] for place in ordered])
        return longer

    def order(self, run_filter: RunFilter) -> Order:
        """Return the runs that pass a filter."""
        order = self._filtered.get(run_filter)
        if order is None:
            passing = {kind for kind, group in enumerate(self.groups) if run_filter.passes(group)}
            order = Order(self._moments, range(len(self._moments)))
            if len(passing) < len(self.groups):
                places = array("I", [place for place, kind in enumerate(self._kinds) if kind in passing])
                order = Order(array("q", [self._moments[place] for place in places]), places)
            # Threads share this without a lock: at worst an order is computed twice.
            if len(self._filtered) >= MAX_FILTERED:
                self._filtered.clear()
            self._filtered[run_filter] = order
        return order

    def span(self, place: int) -> Span:
        """Return the offsets of a run's line."""
        return self._starts[place], self._ends[place]

    def group(self, place: int) -> Group:
        """Return the group of a run, with the grade that its seal proves."""
        return self.groups[self._kinds[place]]


def newest(orders: Mapping[int, Order], cut: PageCut) -> list[tuple[int, int]]:
    """Return day and place of the runs of a page, newest first."""
    moments = [order.moments for order in orders.values()]
    # Counted from the oldest run: the count stays right while new runs arrive.
    ends = _count_oldest(moments, cut.older + cut.size)

    def run(rank: int, day: int, order: Order) -> Iterator[tuple[int, int, int, int]]:
        for place in range(ends[rank] - 1, -1, -1):
            yield -order.moments[place], rank, day, order.places[place]

    heads = [run(rank, day, order) for rank, (day, order) in enumerate(orders.items())]
    return [(day, place) for _, _, day, place in islice(heapq.merge(*heads), cut.size)]


def _count_oldest(moments: list[Sequence[int]], count: int) -> list[int]:
    """Return how many runs of each day are among the `count` oldest."""
    if count >= sum(map(len, moments)):
        return list(map(len, moments))
    moment = at_rank([day_moments for day_moments in moments if day_moments], count - 1)
    ends = [bisect_left(day_moments, moment) for day_moments in moments]
    remaining = count - sum(ends)
    # Among runs with the same moment, those of a later day count as older, as in the merge.
    for rank in reversed(range(len(moments))):
        same = min(remaining, bisect_right(moments[rank], moment) - ends[rank])
        ends[rank] += same
        remaining -= same
    return ends


def _number_groups(groups: list[Group], entries: Sequence[Entry]) -> list[int]:
    """Return the index of each entry's group; new groups are added."""
    numbers = {group: number for number, group in enumerate(groups)}
    known: dict[tuple[object, ...], int] = {}
    kinds: list[int] = []
    # Up to 300,000 iterations: plain attributes instead of properties, and a `try` that is free on success.
    for entry in entries:
        key = (entry.llm, entry.phase, entry.measure_key, entry.grade_key)
        try:
            kinds.append(known[key])
        except (KeyError, TypeError) as unknown:  # TypeError: another program's measure cannot be hashed
            group = Group(entry.llm, entry.phase, entry.measure, entry.grade)
            number = numbers.setdefault(group, len(groups))
            if number == len(groups):
                groups.append(group)
            if isinstance(unknown, KeyError):
                known[key] = number
            kinds.append(number)
    return kinds
