"""Charts: numbers as pictures, in SVG within the page. Pure.

Only shapes are in the SVG, which is stretched to its place; words and numbers stand beside it in HTML, so
that they stay readable on a phone. Each picture has a sentence for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from bridgehead.runtime.findings import ChartBar

from .html import Html, tag

HEIGHT = 100.0
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_ROOM = 0.25
"""The part of a column that is left empty."""

Format = Callable[[float], str]


class Series(Struct, frozen=True):
    """One line of a chart; None is a gap."""

    name: str
    values: Sequence[float | None]


def round_up(value: float) -> float:
    """Return the end of an axis: the next number that is easily read."""
    if value <= 0:
        return 1.0
    scale = 1.0
    while scale * 10 <= value:
        scale *= 10
    while scale > value:
        scale /= 10
    return next(step * scale for step in _STEPS if step * scale >= value * 0.999)


def draw_lines(
    title: str, series: Sequence[Series], written: Format, *, since: str, is_filled: bool = False
) -> Html:
    """Draw lines over time, up to now."""
    top = round_up(max((value for one in series for value in one.values if value is not None), default=0.0))
    shapes = [_draw_line(one, top, number, is_filled=is_filled) for number, one in enumerate(series, start=1)]
    length = max((len(one.values) for one in series), default=1)
    picture = tag(
        "svg",
        _draw_grid(length),
        shapes,
        viewBox=f"0 0 {max(1, length - 1)} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=_describe_lines(title, series, written, since),
    )
    ends = tag("div", tag("span", since), tag("span", "now"), class_="axis", aria_hidden="true")
    plot = tag("div", picture, tag("span", written(top), class_="top", aria_hidden="true"), class_="plot")
    legend = [
        tag("li", tag("span", class_=f"key s{number}"), one.name, " ", tag("b", _last(one, written)))
        for number, one in enumerate(series, start=1)
    ]
    return tag(
        "figure", tag("figcaption", title), tag("ul", legend, class_="legend"), plot, ends, class_="chart"
    )


def _last(one: Series, written: Format) -> str:
    value = one.values[-1] if one.values else None
    return "–" if value is None else written(value)


def _draw_grid(length: int) -> list[Html]:
    return [
        tag("line", x1="0", x2=max(1, length - 1), y1=f"{at:g}", y2=f"{at:g}", class_="grid")
        for at in (HEIGHT / 2, HEIGHT)
    ]


def _draw_line(one: Series, top: float, number: int, *, is_filled: bool) -> list[Html]:
    drawn: list[Html] = []
    for start, values in _find_runs(one.values):
        points = [(start + place, _height(value, top)) for place, value in enumerate(values)]
        line = "M" + "L".join(f"{x:g} {y:.4g}" for x, y in points)
        if len(points) == 1:
            line += "h.01"  # a single value is a dot, which a line of no length is not
        if is_filled:
            area = f"{line}L{points[-1][0]:g} {HEIGHT:g}L{start:g} {HEIGHT:g}Z"
            drawn.append(tag("path", d=area, class_=f"area s{number}"))
        drawn.append(tag("path", d=line, class_=f"line s{number}"))
    return drawn


def _find_runs(values: Sequence[float | None]) -> list[tuple[int, list[float]]]:
    """Split values at the gaps; each run with the place where it begins."""
    runs: list[tuple[int, list[float]]] = []
    is_within = False
    for place, value in enumerate(values):
        if value is None:
            is_within = False
        elif is_within:
            runs[-1][1].append(value)
        else:
            runs.append((place, [value]))
            is_within = True
    return runs


def _height(value: float, top: float) -> float:
    return HEIGHT - HEIGHT * min(1.0, max(0.0, value / top))


def _describe_lines(title: str, series: Sequence[Series], written: Format, since: str) -> str:
    said = []
    for one in series:
        known = [value for value in one.values if value is not None]
        most = written(max(known)) if known else "none"
        said.append(f"{one.name}: now {_last(one, written)}, at most {most}")
    return f"{title}, since {since}. {'; '.join(said) or 'Nothing yet'}."


def draw_bars(title: str, bars: Sequence[ChartBar]) -> Html:
    """Draw bars below each other, as a list that can be read without them."""
    top = max((bar.value for bar in bars), default=0.0)
    rows = [
        tag(
            "li",
            tag("span", bar.label, class_="label"),
            tag(
                "svg",
                tag(
                    "rect",
                    # A sliver for the smallest values, so that something is seen.
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
    return tag("figure", tag("figcaption", title), tag("ol", rows, class_="bars"), class_="chart")


def draw_meter(label: str, value: float, limit: float, shown: str) -> Html:
    """Draw the share of a limit that is used."""
    share = value / limit if limit > 0 else 0.0
    level = "high" if share >= 0.9 else "middle" if share >= 0.7 else "low"  # noqa: PLR2004 - as alerts have it
    bar = tag("rect", width=f"{100 * min(1.0, max(0.0, share)):.4g}%", height="100%", rx="2", class_=level)
    picture = tag("svg", bar, class_="track", role="img", aria_label=f"{label}: {shown}")
    return tag("span", picture, tag("span", shown, class_="number", aria_hidden="true"), class_="meter")


def draw_columns(title: str, bars: Sequence[ChartBar]) -> Html:
    """Draw columns beside each other, such as one for each day."""
    top = round_up(max((bar.value for bar in bars), default=0.0))
    columns = [
        tag(
            "rect",
            tag("title", f"{bar.label}: {bar.shown}"),
            x=f"{place + _ROOM / 2:g}",
            y=f"{_height(bar.value, top):.4g}",
            width=f"{1 - _ROOM:g}",
            height=f"{HEIGHT - _height(bar.value, top):.4g}",
            class_="bar",
        )
        for place, bar in enumerate(bars)
    ]
    said = "; ".join(f"{bar.label}: {bar.shown}" for bar in bars if bar.value) or "Nothing yet"
    picture = tag(
        "svg",
        _draw_grid(len(bars) + 1),
        columns,
        viewBox=f"0 0 {max(1, len(bars))} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}. {said}.",
    )
    ends = [tag("span", bars[0].label), tag("span", bars[-1].label)] if bars else []
    return tag(
        "figure",
        tag("figcaption", title),
        tag("div", picture, tag("span", f"{top:g}", class_="top", aria_hidden="true"), class_="plot"),
        tag("div", ends, class_="axis", aria_hidden="true"),
        class_="chart",
    )
