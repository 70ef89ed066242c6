"""Metrics: what was counted, looked at and measured is there when somebody asks, in order."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.runtime.metrics import SECONDS, Counter, Gauge, Histogram, Labels, Metrics


def test_a_counter_counts_by_label() -> None:
    calls = Metrics().counter("calls_total", "Calls that were answered.", "tool", "outcome")

    calls.add("greet", "ok")
    calls.add("greet", "ok")
    calls.add("greet", "failed", by=3)

    assert calls.values == {("greet", "ok"): 2, ("greet", "failed"): 3}


def test_a_counter_without_labels_has_one_value() -> None:
    bytes_read = Metrics().counter("bytes_total", "Bytes that were read.")
    assert bytes_read.values == {}

    bytes_read.add(by=0.5)
    bytes_read.add(by=1.5)

    assert bytes_read.values == {(): 2.0}


def test_a_gauge_is_asked_each_time_somebody_looks() -> None:
    waiting: dict[Labels, float] = {("low",): 1}
    gauge = Metrics().gauge("waiting", "Calls that wait.", lambda: dict(waiting), "priority")
    assert gauge.values == {("low",): 1}

    waiting[("high",)] = 7

    assert gauge.values == {("low",): 1, ("high",): 7}


def test_a_value_on_a_bound_belongs_to_that_bound_and_one_beyond_all_is_counted_too() -> None:
    took = Histogram("took", "How long it took.", bounds=(1.0, 2.0))

    for value in (0.0, 1.0, 1.5, 2.0, 2.5):
        took.observe(value)

    assert took.counts == {(): [2, 2, 1]}
    assert took.sums == {(): 7.0}


@settings(deadline=None)
@given(values=st.lists(st.floats(0, 120), max_size=50))
def test_every_observation_is_counted_once_at_its_bound(values: list[float]) -> None:
    took = Metrics().histogram("took_seconds", "How long it took.", "tool")

    for value in values:
        took.observe(value, "greet")

    counts = took.counts.get(("greet",), [0] * (len(SECONDS) + 1))
    assert sum(counts) == len(values)
    for bound, below in zip(SECONDS, (sum(counts[: n + 1]) for n in range(len(SECONDS))), strict=True):
        assert below == sum(value <= bound for value in values)
    assert took.sums.get(("greet",), 0.0) == pytest.approx(math.fsum(values))


def test_a_bridge_finds_all_of_its_metrics_in_the_order_of_their_declaration() -> None:
    metrics = Metrics()
    counter = metrics.counter("a_total", "A.", "x")
    gauge = metrics.gauge("b", "B.", dict, "y")
    histogram = metrics.histogram("c_seconds", "C.", "z")

    assert metrics.all == [counter, gauge, histogram]
    assert [(type(m), m.kind, m.name, m.about, m.labels) for m in metrics.all] == [
        (Counter, "counter", "a_total", "A.", ("x",)),
        (Gauge, "gauge", "b", "B.", ("y",)),
        (Histogram, "histogram", "c_seconds", "C.", ("z",)),
    ]


def test_two_bridges_do_not_share_what_they_count() -> None:
    one, other = Metrics(), Metrics()

    one.counter("calls_total", "Calls.").add()

    assert other.all == []


def test_what_is_declared_again_takes_the_place_of_what_was_before() -> None:
    metrics = Metrics()
    metrics.counter("calls_total", "Calls.").add()
    metrics.counter("other_total", "Others.")
    again = metrics.counter("calls_total", "Calls.")

    assert [metric.name for metric in metrics.all] == ["other_total", "calls_total"]
    assert metrics.all[1] is again
