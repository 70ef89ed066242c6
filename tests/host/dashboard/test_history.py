"""History: what happened lately is known, bounded, and costs a call nothing."""

from collections.abc import Callable

import pytest

from bridgehead.host.dashboard.history import (
    DAY,
    HOUR,
    INTERVAL,
    MAX_NOTICES,
    QUARTER,
    RANGES,
    Counts,
    History,
    Range,
    describe_failure,
)
from bridgehead.mcp import CallResult, Outcome, Text, ToolError
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.events import Feed
from bridgehead.runtime.metrics import Metrics
from tests.support.clock import Clock


def counting() -> tuple[Metrics, Callable[..., None]]:
    metrics = Metrics()
    seconds = metrics.histogram("bridgehead_tool_seconds", "Seconds.", "tool", "outcome")
    return metrics, seconds.observe


def test_calls_are_counted_by_the_interval_in_which_they_ended() -> None:
    clock, (metrics, observe) = Clock(), counting()
    history = History(clock)
    history.sample({"aoc": metrics})
    for _ in range(3):
        observe(0.004, "echo", "ok")
    observe(2.0, "echo", "error")
    clock.advance(INTERVAL)
    history.sample({"aoc": metrics})
    clock.advance(INTERVAL)
    history.sample({"aoc": metrics})

    ((slot, bridges),) = history.slots("quarter").items()
    assert slot == QUARTER.slot(clock.now()) - 2
    assert (bridges["aoc"].calls, bridges["aoc"].errors) == (4, 1)


def test_calls_of_a_coarser_range_are_added_up_in_its_slots() -> None:
    clock, (metrics, observe) = Clock(), counting()
    history = History(clock)
    clock.advance(HOUR.interval - clock.now() % HOUR.interval)
    for _ in range(8):  # two slots of 20 s, in samples of 5 s
        observe(0.1, "echo", "ok")
        clock.advance(INTERVAL)
        history.sample({"aoc": metrics})

    assert [each["aoc"].calls for each in history.slots("quarter").values()] == [1] * 8
    assert [each["aoc"].calls for each in history.slots("hour").values()] == [4, 4]
    assert sum(each["aoc"].calls for each in history.slots("day").values()) == 8


@pytest.mark.parametrize("kept", RANGES.values(), ids=RANGES)
def test_only_so_much_is_kept_of_each_range(kept: Range) -> None:
    clock, (metrics, observe) = Clock(), counting()
    history = History(clock)
    for _ in range(kept.slots + 20):
        observe(0.1, "echo", "ok")
        clock.advance(kept.interval)
        history.sample({"aoc": metrics})
    assert kept.slots - 1 <= len(history.slots(kept.name)) <= kept.slots + 1
    clock.advance((kept.slots + 1) * kept.interval)
    assert history.slots(kept.name) == {}


def test_the_ranges_are_a_quarter_of_an_hour_an_hour_and_a_day() -> None:
    assert [each.slots * each.interval for each in (QUARTER, HOUR, DAY)] == [900, 3600, 86_400]


def test_a_quantile_is_as_exact_as_the_buckets() -> None:
    metrics, observe = counting()
    for milliseconds in range(1, 101):
        observe(milliseconds / 1000, "echo", "ok")
    counts = Counts(100, 0, next(iter(metrics.all[0].counts.values())))  # type: ignore[union-attr]

    assert counts.quantile(0.5) == pytest.approx(0.05, abs=0.005)
    assert counts.quantile(0.95) == pytest.approx(0.095, abs=0.006)
    assert Counts().quantile(0.5) is None
    observe(1000.0, "echo", "ok")
    assert counts.quantile(1.0) == 60.0


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Outcome("error", error=BridgeError("Away.", next_step="Wait.")), ("Away.", "Wait.")),
        (Outcome("error", error=ToolError("No.")), ("No.", "")),
        (
            Outcome("error", error=RuntimeError("a secret of the inside")),
            ("An unexpected failure (RuntimeError).", "The log has the details."),
        ),
        (Outcome("error", CallResult([Text("It failed.")], is_error=True)), ("It failed.", "")),
        (Outcome("error", CallResult([], is_error=True)), ("The tool gave no details.", "")),
    ],
)
def test_a_failure_is_told_in_the_words_of_its_bridge(outcome: Outcome, told: tuple[str, str]) -> None:
    assert describe_failure(outcome) == told


def test_a_failure_is_short_and_without_secrets() -> None:
    logs.hide("sk-hidden-in-a-failure")
    problem, _ = describe_failure(Outcome("error", error=ToolError("sk-hidden-in-a-failure " + "x" * 9999)))

    assert "sk-hidden" not in problem
    assert len(problem) == 600


def test_notices_are_kept_and_calls_are_not_listened_to() -> None:
    feed, history = Feed(), History(Clock())
    feed.join(history.notices)
    assert not feed.has_call_listeners

    feed.publish("call.failed", bridge="aoc")
    for number in range(MAX_NOTICES + 5):
        feed.publish("budget.reached", bridge="mercury", share=number)
    feed.publish("far_side.lost", bridge="aoc", says="Gone.")

    first, second, *_ = history.notices.last
    assert (first.kind, first.bridge, first.text) == ("far_side.lost", "aoc", "Gone.")
    assert second.text == f"share {MAX_NOTICES + 4}"
    assert len(history.notices.last) == MAX_NOTICES
