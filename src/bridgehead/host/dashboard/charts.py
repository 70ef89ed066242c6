"""Charts: lines, bars, columns and meters as SVG within the page. Pure.

The SVG has only shapes, because it is stretched to the width of the page; words and numbers are HTML beside
it, so they stay readable on a phone. Each chart has a sentence for screen readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from bridgehead.runtime.findings import ChartBar

from .html import NOTHING, Html, tag

HEIGHT = 100.0
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_GAP = 0.25
"""Share of a column's width that is left empty."""


class Series(Struct, frozen=True):
    """One line of a chart; None is a gap."""

    name: str
    values: Sequence[float | None]


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
) -> Html:
    """Draw lines over time. `write` formats a value, `since` and `until` name the ends."""
    values = [value for line in series for value in line.values if value is not None]
    top = round_up(max(values, default=0.0))
    shapes = [
        _draw_line(line, top, number, is_filled=is_filled) for number, line in enumerate(series, start=1)
    ]
    length = max((len(line.values) for line in series), default=1)
    picture = tag(
        "svg",
        _draw_grid(length),
        shapes,
        viewBox=f"0 0 {max(1, length - 1)} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=_describe_lines(title, series, write, since, until),
    )
    # Hidden from screen readers: the label of the picture says the same.
    ends = tag("div", tag("span", since), tag("span", until), class_="axis", aria_hidden="true")
    plot = tag("div", picture, tag("span", write(top), class_="top", aria_hidden="true"), class_="plot")
    legend = [
        tag("li", tag("span", class_=f"key s{number}"), line.name, " ", tag("b", _last(line, write)))
        for number, line in enumerate(series, start=1)
    ]
    # Axes without a line look like a chart that failed to load.
    body = [plot, ends] if values else tag("p", "Nothing yet.", class_="hint")
    return tag("figure", tag("figcaption", title), tag("ul", legend, class_="legend"), body, class_="chart")


def _last(line: Series, write: Callable[[float], str]) -> str:
    value = line.values[-1] if line.values else None
    return "–" if value is None else write(value)


def _draw_grid(length: int) -> list[Html]:
    return [
        tag("line", x1="0", x2=max(1, length - 1), y1=f"{at:g}", y2=f"{at:g}", class_="grid")
        for at in (HEIGHT / 2, HEIGHT)
    ]


def _draw_line(line: Series, top: float, number: int, *, is_filled: bool) -> list[Html]:
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
    paths: list[Html] = []
    for start, values in runs:
        points = [(start + index, _height(value, top)) for index, value in enumerate(values)]
        path = "M" + "L".join(f"{x:g} {y:.4g}" for x, y in points)
        shape = "line"
        if len(points) == 1:
            # A path without length is not drawn, and a single value must be seen.
            path, shape = f"{path}h.01", "line dot"
        if is_filled:
            area = f"{path}L{points[-1][0]:g} {HEIGHT:g}L{start:g} {HEIGHT:g}Z"
            paths.append(tag("path", d=area, class_=f"area s{number}"))
        paths.append(tag("path", d=path, class_=f"{shape} s{number}"))
    return paths


def _height(value: float, top: float) -> float:
    return HEIGHT - HEIGHT * min(1.0, max(0.0, value / top))


def _describe_lines(
    title: str, series: Sequence[Series], write: Callable[[float], str], since: str, until: str
) -> str:
    sentences = []
    for line in series:
        known = [value for value in line.values if value is not None]
        maximum = write(max(known)) if known else "none"
        sentences.append(f"{line.name}: {until} {_last(line, write)}, at most {maximum}")
    return f"{title}, since {since}. {'; '.join(sentences) or 'Nothing yet'}."


def draw_bars(title: str, bars: Sequence[ChartBar], note: str = "") -> Html:
    """Draw horizontal bars as a list of labels and values, which screen readers read without the bars."""
    top = max((bar.value for bar in bars), default=0.0)
    rows = [
        tag(
            "li",
            tag("span", bar.label, class_="label"),
            tag(
                "svg",
                tag(
                    "rect",
                    # A minimum width, so that the smallest values are visible.
                    width=f"{100 * min(1.0, max(0.004, bar.value / top if top > 0 else 0.0)):.4g}%",
                    height="100%",
                    rx="2",
                    class_="bar",
                ),
                class_="track",
                aria_hidden="true",
            ),
            tag("b", bar.shown, class_="number"),
        )
        for bar in bars
    ]
    about = tag("p", note, class_="hint") if note else NOTHING
    return tag("figure", tag("figcaption", title), tag("ol", rows, class_="bars"), about, class_="chart")


def draw_meter(label: str, value: float, limit: float, shown: str) -> Html:
    """Draw the share of a limit that is used."""
    share = value / limit if limit > 0 else 0.0
    level = "high" if share >= 0.9 else "middle" if share >= 0.7 else "low"  # noqa: PLR2004 - as alerts have it
    bar = tag("rect", width=f"{100 * min(1.0, max(0.0, share)):.4g}%", height="100%", rx="2", class_=level)
    picture = tag("svg", bar, class_="track", role="img", aria_label=f"{label}: {shown}")
    return tag("span", picture, tag("span", shown, class_="number", aria_hidden="true"), class_="meter")


def draw_columns(title: str, bars: Sequence[ChartBar]) -> Html:
    """Draw columns, such as one for each day."""
    top = round_up(max((bar.value for bar in bars), default=0.0))
    columns = [
        tag(
            "rect",
            tag("title", f"{bar.label}: {bar.shown}"),
            x=f"{index + _GAP / 2:g}",
            y=f"{_height(bar.value, top):.4g}",
            width=f"{1 - _GAP:g}",
            height=f"{HEIGHT - _height(bar.value, top):.4g}",
            class_="bar",
        )
        for index, bar in enumerate(bars)
    ]
    values = "; ".join(f"{bar.label}: {bar.shown}" for bar in bars if bar.value) or "Nothing yet"
    picture = tag(
        "svg",
        _draw_grid(len(bars) + 1),
        columns,
        viewBox=f"0 0 {max(1, len(bars))} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}. {values}.",
    )
    ends = [tag("span", bars[0].label), tag("span", bars[-1].label)] if bars else []
    return tag(
        "figure",
        tag("figcaption", title),
        tag("div", picture, tag("span", f"{top:g}", class_="top", aria_hidden="true"), class_="plot"),
        tag("div", ends, class_="axis", aria_hidden="true"),
        class_="chart",
    )
