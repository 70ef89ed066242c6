"""Charts: computes the shapes and sentences of lines, bars, columns and meters. Pure.

The macros in `templates/charts.html` draw them as SVG that has only shapes, because it is stretched to the
width of the page; words and numbers are HTML beside it, so they stay readable on a phone. Each chart has a
sentence for screen readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from bridgehead.runtime.findings import ChartBar

HEIGHT = 100.0
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_GAP = 0.25
"""Share of a column's width that is left empty."""
_MIN_SHARE = 0.004
"""The shortest bar, so that the smallest values are visible."""


class Series(Struct, frozen=True):
    """One line of a chart; None is a gap."""

    name: str
    values: Sequence[float | None]


class Line(Struct, frozen=True):
    """One line as it is drawn."""

    name: str
    last: str
    paths: list[tuple[str, str]]
    """The data and the class of each path."""


class LineChart(Struct, frozen=True):
    """Lines over time."""

    title: str
    lines: list[Line]
    width: float
    top: str
    since: str
    until: str
    label: str
    """The chart in a sentence."""
    has_values: bool
    """Axes without a line look like a chart that failed to load."""


class Bar(Struct, frozen=True):
    """One bar or column; the columns' places are in the units of their chart."""

    label: str
    shown: str
    share: float
    """Its length, 0 to 1."""
    x: float = 0.0


class BarChart(Struct, frozen=True):
    """Bars or columns."""

    title: str
    bars: list[Bar]
    note: str = ""
    top: str = ""
    label: str = ""
    width: float = 1.0
    bar_width: float = 1 - _GAP
    is_columns: bool = False


def round_up(value: float) -> float:
    """Return the end of an axis: the next round number."""
    if value <= 0:
        return 1.0
    scale = 1.0
    while scale * 10 <= value:
        scale *= 10
    while scale > value:
        scale /= 10
    # 0.999: a rounding error must not push a value that is exactly on a step to the next one.
    return next(step * scale for step in _STEPS if step * scale >= value * 0.999)


def draw_lines(
    title: str,
    series: Sequence[Series],
    write: Callable[[float], str],
    *,
    since: str,
    until: str = "now",
    is_filled: bool = False,
) -> LineChart:
    """Compute lines over time. `write` formats a value, `since` and `until` name the ends."""
    values = [value for line in series for value in line.values if value is not None]
    top = round_up(max(values, default=0.0))
    length = max((len(line.values) for line in series), default=1)
    lines = [
        Line(line.name, _last(line, write), _draw_line(line, top, number, is_filled=is_filled))
        for number, line in enumerate(series, start=1)
    ]
    label = _describe_lines(title, series, write, since, until)
    return LineChart(title, lines, max(1, length - 1), write(top), since, until, label, bool(values))


def _last(line: Series, write: Callable[[float], str]) -> str:
    value = line.values[-1] if line.values else None
    return "–" if value is None else write(value)


def _draw_line(line: Series, top: float, number: int, *, is_filled: bool) -> list[tuple[str, str]]:
    # A gap ends one path and begins the next: each run has its start and its values.
    runs: list[tuple[int, list[float]]] = []
    is_within = False
    for index, value in enumerate(line.values):
        if value is None:
            is_within = False
        elif is_within:
            runs[-1][1].append(value)
        else:
            runs.append((index, [value]))
            is_within = True
    paths: list[tuple[str, str]] = []
    for start, values in runs:
        points = [(start + index, HEIGHT - HEIGHT * _share(value, top)) for index, value in enumerate(values)]
        path = "M" + "L".join(f"{x:g} {y:.4g}" for x, y in points)
        shape = "line"
        if len(points) == 1:
            # A path without length is not drawn, and a single value must be seen.
            path, shape = f"{path}h.01", "line dot"
        if is_filled:
            area = f"{path}L{points[-1][0]:g} {HEIGHT:g}L{start:g} {HEIGHT:g}Z"
            paths.append((area, f"area s{number}"))
        paths.append((path, f"{shape} s{number}"))
    return paths


def _share(value: float, top: float) -> float:
    return min(1.0, max(0.0, value / top)) if top > 0 else 0.0


def _describe_lines(
    title: str, series: Sequence[Series], write: Callable[[float], str], since: str, until: str
) -> str:
    sentences = []
    for line in series:
        known = [value for value in line.values if value is not None]
        maximum = write(max(known)) if known else "none"
        sentences.append(f"{line.name}: {until} {_last(line, write)}, at most {maximum}")
    return f"{title}, since {since}. {'; '.join(sentences) or 'Nothing yet'}."


def draw_bars(title: str, bars: Sequence[ChartBar], note: str = "") -> BarChart:
    """Compute horizontal bars with their labels and values."""
    top = max((bar.value for bar in bars), default=0.0)
    drawn = [Bar(bar.label, bar.shown, max(_MIN_SHARE, _share(bar.value, top))) for bar in bars]
    return BarChart(title, drawn, note)


def draw_columns(title: str, bars: Sequence[ChartBar]) -> BarChart:
    """Compute columns, such as one for each day."""
    top = round_up(max((bar.value for bar in bars), default=0.0))
    drawn = [
        Bar(bar.label, bar.shown, _share(bar.value, top), index + _GAP / 2) for index, bar in enumerate(bars)
    ]
    values = "; ".join(f"{bar.label}: {bar.shown}" for bar in bars if bar.value) or "Nothing yet"
    label, width = f"{title}. {values}.", max(1, len(bars))
    return BarChart(title, drawn, top=f"{top:g}", label=label, width=width, is_columns=True)


class Meter(Struct, frozen=True):
    """The share of a limit that is used."""

    label: str
    shown: str
    share: float
    level: str = ""
    """Empty if there is no limit."""


def draw_meter(label: str, value: float, limit: float, shown: str) -> Meter:
    """Compute the share of a limit that is used."""
    share = value / limit if limit > 0 else 0.0
    level = "high" if share >= 0.9 else "middle" if share >= 0.7 else "low"  # noqa: PLR2004 - as alerts have it
    return Meter(label, shown, _share(value, limit), level)
