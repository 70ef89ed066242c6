"""Overview: computes the first page and the page of one bridge from a snapshot and reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from bridgehead.runtime.findings import Report

from ..auth.grants import Grant
from . import layout
from .charts import LineChart, Series, draw_bars, draw_columns, draw_lines
from .history import QUARTER, RANGES, Counts, Failure, Notice, Range
from .layout import Page
from .snapshot import BridgeState, Snapshot
from .templates import duration, latency, link, number, plural, render, size

MAX_SHOWN = 5
"""Failures and notices on the first page."""
_MINUTE = 60.0
_MIN_SLOTS = 24
"""Slots that a chart shows at least: two minutes of the shortest range, two hours of the day."""
_MAX_FACTS = 4
_MANY_FAILED = 0.05


class Card(Struct, frozen=True):
    """One bridge on the first page."""

    bridge: BridgeState
    is_open: bool
    facts: list[tuple[str, str]]


class Traffic(Struct, frozen=True):
    """The charts of calls, and the ranges that a visitor may choose."""

    charts: list[LineChart]
    ranges: list[tuple[str, str, bool]]
    note: str


def write_overview(
    snapshot: Snapshot, reports: Mapping[str, Report], grant: Grant, shown: Range = QUARTER
) -> Page:
    """Write the first page; `shown` is the range of its charts."""
    failures = [failure for failure in snapshot.failures if grant.may_read(failure.bridge)]
    memory = snapshot.process.memory_bytes
    up = snapshot.taken - snapshot.process.started
    about = [f"Bridgehead {snapshot.version}", f"up for {duration(up)}"]
    if memory:  # not known on every platform
        about.append(f"{size(memory)} of memory")
    body = render(
        "overview.html",
        about=" · ".join(about),
        tiles=_count(snapshot),
        traffic=_draw_traffic(snapshot, shown),
        cards=[_describe_bridge(snapshot, bridge, reports, grant) for bridge in snapshot.bridges],
        failures=group_failures(failures)[:MAX_SHOWN],
        notices=name_notices(snapshot.notices[:MAX_SHOWN]),
        now=snapshot.taken,
    )
    return Page("Overview", body, layout.OVERVIEW, is_live=True)


def _count(snapshot: Snapshot) -> list[tuple[str, str, str, str]]:
    """Return the figures of the first page: label, value, note and level."""
    rate = _recent(snapshot, _MINUTE).calls / _MINUTE
    quarter = _recent(snapshot)
    failed = quarter.errors / quarter.calls if quarter.calls else 0.0
    opened = snapshot.open
    in_flight = sum(bridge.in_flight for bridge in snapshot.bridges)
    connections = plural(opened.get("connections", 0), "connection")
    return [
        ("Calls a second", number(rate), f"{number(snapshot.calls.calls)} since the start", ""),
        (
            "Failed",
            f"{100 * failed:.3g} %",
            f"{number(quarter.errors)} of {number(quarter.calls)} calls",
            "bad" if failed > _MANY_FAILED else "",
        ),
        ("Median latency", latency(quarter.quantile(0.5)), "in the last 15 min", ""),
        ("95th percentile", latency(quarter.quantile(0.95)), "in the last 15 min", ""),
        ("Sessions", number(opened.get("sessions", 0)), "open", ""),
        ("Streams", number(opened.get("streams", 0)), connections, ""),
        ("Tasks", number(sum(snapshot.tasks.values())), "running", ""),
        ("In flight", number(in_flight), "calls being answered", ""),
    ]


def _recent(
    snapshot: Snapshot, seconds: float = QUARTER.slots * QUARTER.interval, bridge: str | None = None
) -> Counts:
    """Add up the calls of the last seconds, at most a quarter of an hour."""
    total = Counts()
    oldest = QUARTER.slot(snapshot.taken - seconds)
    for slot, bridges in snapshot.slots[QUARTER.name].items():
        for name, counts in bridges.items():
            if slot >= oldest and bridge in {None, name}:
                total.add(counts)
    return total


def _draw_traffic(snapshot: Snapshot, shown: Range, bridge: str | None = None) -> Traffic:
    """Draw calls, latency and failures, of all bridges or of one, and offer the other ranges."""
    names = [state.name for state in snapshot.bridges if bridge in {None, state.name}]
    titles = {state.name: state.title for state in snapshot.bridges}
    started = snapshot.process.started
    # The whole range, or the time since the start. The current slot is left out: it is not complete and would
    # look like a drop.
    now, first = shown.slot(snapshot.taken), shown.slot(started)
    slots = range(now - min(shown.slots, max(_MIN_SLOTS, now - first)), now)
    calls_of = snapshot.slots.get(shown.name, {})

    def count(slot: int, name: str) -> Counts | None:
        """Return the calls of a slot; None before the start, which is a gap in the lines and not a zero."""
        return calls_of.get(slot, {}).get(name, _NO_CALLS) if slot >= first else None

    calls, errors = [], []
    for name in names:
        counts = [count(slot, name) for slot in slots]
        calls.append(
            Series(titles[name], [None if slot is None else slot.calls / shown.interval for slot in counts])
        )
        errors.append(Series(titles[name], [None if slot is None else float(slot.errors) for slot in counts]))
    sums = []
    for slot in slots:
        total = Counts()
        for name in names:
            total.add(count(slot, name) or _NO_CALLS)
        sums.append(total)
    times = [
        Series(label, [counts.quantile(share) for counts in sums])
        for label, share in (("Median", 0.5), ("95th percentile", 0.95))
    ]
    began, behind = slots.start * shown.interval, snapshot.taken - now * shown.interval
    since = f"{duration(snapshot.taken - began)} ago"
    until = "now" if behind < _MINUTE else f"{duration(behind)} ago"
    charts = [
        draw_lines("Calls a second", calls, number, since=since, until=until, is_filled=len(calls) == 1),
        draw_lines("Latency", times, latency, since=since, until=until),
        draw_lines(f"Failed calls in {duration(shown.interval)}", errors, number, since=since, until=until),
    ]
    path, query = (layout.OVERVIEW, {}) if bridge is None else (layout.BRIDGE, {"name": bridge})
    offered = [
        (each.title, link(path, **query, range=None if each is QUARTER else name), each is shown)
        for name, each in RANGES.items()
    ]
    note = ""
    if began < started:  # less than the whole range is known: say so, the lines alone look like silence
        at = f"{datetime.fromtimestamp(started, UTC):%Y-%m-%d %H:%M} UTC"
        note = f"Recorded since the start of the server, {at}; one point every {duration(shown.interval)}."
    return Traffic(charts, offered, note)


_NO_CALLS = Counts()


# --- bridges -----------------------------------------------------------------------------------------------


def _describe_bridge(
    snapshot: Snapshot, bridge: BridgeState, reports: Mapping[str, Report], grant: Grant
) -> Card:
    quarter, report = _recent(snapshot, bridge=bridge.name), reports.get(bridge.name)
    facts = [(fact.label, fact.value) for fact in report.facts[:_MAX_FACTS]] if report is not None else []
    facts += [("Calls in 15 min", number(quarter.calls)), ("Median", latency(quarter.quantile(0.5)))]
    return Card(bridge, grant.may_read(bridge.name), facts)


def write_bridge(
    snapshot: Snapshot, bridge: BridgeState, report: Report | None, shown: Range = QUARTER
) -> Page:
    """Write the page of one bridge; `shown` is the range of its charts."""
    report = report or Report()
    body = render(
        "bridge.html",
        bridge=bridge,
        facts=report.facts,
        report_charts=[
            draw_bars(chart.title, chart.bars, chart.note)
            if chart.kind == "bars"
            else draw_columns(chart.title, chart.bars)
            for chart in report.charts
        ],
        tables=report.tables,
        traffic=_draw_traffic(snapshot, shown, bridge.name),
        tools=sorted(bridge.tools.items(), key=lambda item: (-item[1].calls, item[0])),
    )
    return Page(bridge.title, body, layout.OVERVIEW, is_live=True)


# --- failures and notices ----------------------------------------------------------------------------------


def group_failures(failures: Sequence[Failure]) -> list[tuple[Failure, int]]:
    """Return failed calls, newest first; those of one bridge, tool, client and problem once, counted."""
    groups: dict[tuple[str, ...], list[Failure]] = {}
    for failure in failures:
        key = (failure.bridge, failure.tool, failure.client, failure.problem)
        groups.setdefault(key, []).append(failure)
    return [(group[0], len(group)) for group in groups.values()]


_KINDS = {
    "budget.threshold": ("budget", "warm"),
    "budget.refused": ("over budget", "warm"),
    "budget.uncertain": ("cost uncertain", "warm"),
    "breaker.opened": ("provider paused", "warm"),
    "breaker.closed": ("provider back", "good"),
    "far_side.lost": ("disconnected", "warm"),
    "far_side.returned": ("connected", "good"),
    "store.lost": ("file unusable", "warm"),
    "store.returned": ("file usable", "good"),
}
"""The words and the level of the badge of each type of event; a type of another bridge names itself."""


def name_notices(notices: Sequence[Notice]) -> list[tuple[Notice, str, str]]:
    """Return events about far sides, breakers and budgets with the words and the level of their badges."""
    return [(notice, *_KINDS.get(notice.kind, (notice.kind, "warm"))) for notice in notices]
