"""Metrics: plain numbers that hot paths add to; read only when they are collected.

A `Metrics` belongs to one running bridge. Exposition formats are not its business.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TypeVar

Labels = tuple[str, ...]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Histogram bounds for durations."""


class Counter:
    """A value per label that only grows."""

    kind = "counter"

    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self.name = name
        self.about = about
        self.labels = labels
        self.values: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Increase the value."""
        self.values[labels] = self.values.get(labels, 0) + by


class Gauge:
    """A value that a function returns whenever metrics are collected."""

    def __init__(
        self,
        name: str,
        about: str,
        read: Callable[[], dict[Labels, float]],
        labels: Labels = (),
        kind: str = "gauge",
    ) -> None:
        self.kind = kind
        self.name = name
        self.about = about
        self.labels = labels
        self._read = read

    @property
    def values(self) -> dict[Labels, float]:
        """The current values."""
        return self._read()


class Histogram:
    """A distribution of values per label."""

    kind = "histogram"

    def __init__(
        self, name: str, about: str, labels: Labels = (), bounds: tuple[float, ...] = SECONDS
    ) -> None:
        self.name = name
        self.about = about
        self.labels = labels
        self.bounds = bounds
        self.counts: dict[Labels, list[int]] = {}
        self.sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Record one value."""
        counts = self.counts.get(labels)
        if counts is None:
            counts = self.counts[labels] = [0] * (len(self.bounds) + 1)
            self.sums[labels] = 0.0
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[labels] += value


Metric = Counter | Gauge | Histogram
M = TypeVar("M", Counter, Gauge, Histogram)


class Metrics:
    """The metrics of one bridge, in the order of their declaration."""

    def __init__(self) -> None:
        self.all: list[Metric] = []

    def counter(self, name: str, about: str, *labels: str) -> Counter:
        """Declare a counter."""
        return self._add(Counter(name, about, labels))

    def gauge(self, name: str, about: str, read: Callable[[], dict[Labels, float]], *labels: str) -> Gauge:
        """Declare a gauge."""
        return self._add(Gauge(name, about, read, labels))

    def total(self, name: str, about: str, read: Callable[[], dict[Labels, float]], *labels: str) -> Gauge:
        """Declare a counter whose values `read` returns."""
        return self._add(Gauge(name, about, read, labels, kind="counter"))

    def histogram(self, name: str, about: str, *labels: str) -> Histogram:
        """Declare a histogram of seconds."""
        return self._add(Histogram(name, about, labels))

    def _add(self, metric: M) -> M:
        # A restarted bridge declares its metrics again: the new ones replace the old and count from zero.
        self.all = [other for other in self.all if other.name != metric.name]
        self.all.append(metric)
        return metric
