"""Overview: writes the first page and the page of one bridge from a snapshot and reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from bridgehead.runtime.findings import Report

from ..auth.grants import Grant
from . import layout
from .charts import Series, draw_bars, draw_columns, draw_lines
from .history import QUARTER, RANGES, Counts, Failure, Notice, Range
from .html import NOTHING, Child, Html, join, link, prose, table, tag
from .layout import (
    Page,
    badge,
    choices,
    duration,
    empty,
    latency,
    number,
    plural,
    section,
    size,
    tile,
    tiles,
    when,
)
from .snapshot import BridgeState, Snapshot

MAX_SHOWN = 5
"""Failures and notices on the first page."""
_MINUTE = 60.0
_MIN_SLOTS = 24
"""Slots that a chart shows at least: two minutes of the shortest range, two hours of the day."""
_MAX_FACTS = 4
_MANY_FAILED = 0.05


def write_overview(
    snapshot: Snapshot, reports: Mapping[str, Report], grant: Grant, shown: Range = QUARTER
) -> Page:
    """Write the first page; `shown` is the range of its charts."""
    failures = [failure for failure in snapshot.failures if grant.may_read(failure.bridge)]
    all_failures = tag("a", "All failures", href=layout.FAILURES) if failures else NOTHING
    memory = snapshot.process.memory_bytes
    up = snapshot.taken - snapshot.process.started
    about = [f"Bridgehead {snapshot.version}", f"up for {duration(up)}"]
    if memory:  # not known on every platform
        about.append(f"{size(memory)} of memory")
    body = join(
        [
            tag("h1", "Overview"),
            tag("p", " · ".join(about), class_="lead", id="about"),
            section("Right now", _write_numbers(snapshot), name="now"),
            _write_traffic(snapshot, shown),
            section("Bridges", _write_cards(snapshot, reports, grant), name="bridges"),
            section(
                "Recent failures",
                write_failures(failures, snapshot.taken, MAX_SHOWN),
                name="failures",
                note=all_failures,
            ),
            section("Notices", write_notices(snapshot.notices[:MAX_SHOWN], snapshot.taken), name="notices"),
        ]
    )
    return Page("Overview", body, layout.OVERVIEW, is_live=True)


def _write_numbers(snapshot: Snapshot) -> Html:
    rate = _recent(snapshot, _MINUTE).calls / _MINUTE
    quarter = _recent(snapshot)
    failed = quarter.errors / quarter.calls if quarter.calls else 0.0
    opened = snapshot.open
    return tiles(
        [
            tile("Calls a second", number(rate), f"{number(snapshot.calls.calls)} since the start"),
            tile(
                "Failed",
                f"{100 * failed:.3g} %",
                f"{number(quarter.errors)} of {number(quarter.calls)} calls",
                level="bad" if failed > _MANY_FAILED else "",
            ),
            tile("Median latency", latency(quarter.quantile(0.5)), "in the last 15 min"),
            tile("95th percentile", latency(quarter.quantile(0.95)), "in the last 15 min"),
            tile("Sessions", number(opened.get("sessions", 0)), "open"),
            tile(
                "Streams",
                number(opened.get("streams", 0)),
                plural(opened.get("connections", 0), "connection"),
            ),
            tile("Tasks", number(sum(snapshot.tasks.values())), "running"),
            tile(
                "In flight",
                number(sum(bridge.in_flight for bridge in snapshot.bridges)),
                "calls being answered",
            ),
        ]
    )


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


def _write_traffic(snapshot: Snapshot, shown: Range, bridge: str | None = None) -> Html:
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
    charts = tag(
        "div",
        draw_lines("Calls a second", calls, number, since=since, until=until, is_filled=len(calls) == 1),
        draw_lines("Latency", times, latency, since=since, until=until),
        draw_lines(f"Failed calls in {duration(shown.interval)}", errors, number, since=since, until=until),
        class_="charts",
    )
    path, query = (layout.OVERVIEW, {}) if bridge is None else (layout.BRIDGE, {"name": bridge})
    offered = [
        (each.title, link(path, **query, range=None if each is QUARTER else name), each is shown)
        for name, each in RANGES.items()
    ]
    note = NOTHING
    if began < started:  # less than the whole range is known: say so, the lines alone look like silence
        at = f"{datetime.fromtimestamp(started, UTC):%Y-%m-%d %H:%M} UTC"
        every = f"one point every {duration(shown.interval)}"
        note = tag("p", f"Recorded since the start of the server, {at}; {every}.", class_="hint")
    return section("Traffic", charts, note, name="traffic", note=choices("Range of the charts", offered))


_NO_CALLS = Counts()


# --- bridges -----------------------------------------------------------------------------------------------


def _write_cards(snapshot: Snapshot, reports: Mapping[str, Report], grant: Grant) -> Html:
    cards = []
    for bridge in snapshot.bridges:
        quarter, report = _recent(snapshot, bridge=bridge.name), reports.get(bridge.name)
        is_open = grant.may_read(bridge.name)
        title = (
            tag("a", bridge.title, href=link(layout.BRIDGE, name=bridge.name)) if is_open else bridge.title
        )
        facts = [(fact.label, fact.value) for fact in report.facts[:_MAX_FACTS]] if report is not None else []
        facts += [("Calls in 15 min", number(quarter.calls)), ("Median", latency(quarter.quantile(0.5)))]
        cards.append(
            tag(
                "article",
                tag("h3", title, write_status(bridge)),
                tag(
                    "p",
                    prose(bridge.detail if is_open else "This token does not open the bridge."),
                    class_="says",
                ),
                tag(
                    "dl",
                    [tag("div", tag("dt", label), tag("dd", value)) for label, value in facts],
                    class_="facts",
                ),
                class_="card",
            )
        )
    return tag("div", cards, class_="cards")


def write_status(bridge: BridgeState) -> Html:
    """Write the badge of a bridge's state."""
    if not bridge.serves:
        return badge("not serving", "bad")
    return badge("ready", "good") if bridge.is_far_side_up else badge("not connected", "warm")


def write_bridge(
    snapshot: Snapshot, bridge: BridgeState, report: Report | None, shown: Range = QUARTER
) -> Page:
    """Write the page of one bridge; `shown` is the range of its charts."""
    parts: list[Child] = [
        tag("h1", bridge.title, " ", write_status(bridge)),
        tag("p", prose(bridge.detail), class_="lead", id="about"),
    ]
    if report is not None and report.facts:
        facts = [tag("div", tag("dt", fact.label), tag("dd", fact.value)) for fact in report.facts]
        parts.append(section("Status", tag("dl", facts, class_="facts wide"), name="facts"))
    parts.extend(_write_report(report or Report()))
    parts.append(_write_traffic(snapshot, shown, bridge.name))
    parts.append(section("Tools", _write_tools(bridge), name="tools"))
    return Page(bridge.title, join(parts), layout.OVERVIEW, is_live=True)


def _write_report(report: Report) -> list[Html]:
    charts = [
        draw_bars(chart.title, chart.bars, chart.note)
        if chart.kind == "bars"
        else draw_columns(chart.title, chart.bars)
        for chart in report.charts
    ]
    sections = [section("Charts", tag("div", charts, class_="charts"), name="charts")] if charts else []
    for index, data in enumerate(report.tables):
        heads = [(column, column in data.numbers) for column in data.columns]
        content = (
            table(heads, data.rows, caption=data.title) if data.rows else empty("There is nothing here yet.")
        )
        sections.append(section(data.title, content, name=f"table{index}"))
    return sections


def _write_tools(bridge: BridgeState) -> Html:
    if not bridge.tools:
        return empty("No tool has been called yet. ", tag("a", "Try one", href=layout.TOOLS), ".")
    rows = [
        [
            tag("a", tag("code", name), href=link(layout.TOOL, bridge=bridge.name, name=name)),
            number(counts.calls),
            number(counts.errors),
            latency(counts.quantile(0.5)),
            latency(counts.quantile(0.95)),
        ]
        for name, counts in sorted(bridge.tools.items(), key=lambda item: (-item[1].calls, item[0]))
    ]
    heads = [("Tool", False), ("Calls", True), ("Failed", True), ("Median", True), ("95th percentile", True)]
    return table(heads, rows, caption="Calls since the start")


# --- failures and notices ----------------------------------------------------------------------------------


def write_failures(failures: Sequence[Failure], now: float, limit: int | None = None) -> Html:
    """List failed calls, newest first; equal ones (bridge, tool, client, problem) once, with their count."""
    if not failures:
        return empty("No call has failed since the start. Failures appear here with what to do about them.")
    groups: dict[tuple[str, ...], list[Failure]] = {}
    for failure in failures:
        key = (failure.bridge, failure.tool, failure.client, failure.problem)
        groups.setdefault(key, []).append(failure)
    items = [_write_failure(group[0], len(group), now) for group in groups.values()]
    return tag("ol", items[:limit], class_="events")


def _write_failure(failure: Failure, times: int, now: float) -> Html:
    who = f" by {failure.client}" if failure.client else ""
    step = (
        tag("p", tag("b", "Next: "), prose(failure.next_step), class_="next")
        if failure.next_step
        else NOTHING
    )
    request = tag("span", "request ", tag("code", failure.request)) if failure.request else NOTHING
    return tag(
        "li",
        tag(
            "p",
            tag("code", failure.tool),
            tag("span", f"{failure.bridge}{who}"),
            tag("b", f"× {times}") if times > 1 else NOTHING,
            when(failure.at, now),
            request,
            class_="meta",
        ),
        tag("p", prose(failure.problem), class_="text"),
        step,
    )


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


def write_notices(notices: Sequence[Notice], now: float) -> Html:
    """List events about far sides, breakers and budgets, newest first."""
    if not notices:
        return empty("No connection was lost and no budget reached since the start.")
    items = [
        tag(
            "li",
            tag(
                "p",
                badge(*_KINDS.get(notice.kind, (notice.kind, "warm"))),
                tag("span", notice.bridge),
                when(notice.at, now),
                class_="meta",
            ),
            tag("p", notice.text, class_="text"),
        )
        for notice in notices
    ]
    return tag("ol", items, class_="events")
