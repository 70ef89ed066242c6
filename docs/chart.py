"""Chart: the table of bench/RESULTS.md as a picture. Every server in it has a coroutine as its tool."""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bridgehead.aoc.ranking.plot import Theme

RESULTS = Path(__file__).parents[1] / "bench" / "RESULTS.md"
OURS = "Bridgehead, coroutine"
SERVERS = {
    OURS: "Bridgehead",
    "TypeScript SDK": "TypeScript SDK",
    "Python SDK, low-level": "Python SDK",
    "FastMCP": "FastMCP",
}
PANELS = {
    "cold start": "First answer, ms (less is better)",
    "stdio, one at a time": "Calls a second over stdio, one at a time",
    "HTTP, stateless": "Calls a second over HTTP, stateless",
}
NUMBER = re.compile(r"[\d,]+(?:\.\d+)?")
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "svg.fonttype": "path",
    "svg.hashsalt": "bridgehead",  # the same figures give the same bytes
}


def read_figures(text: str) -> dict[str, dict[str, float]]:
    """Return the figures of the first table, by server and measure."""
    lines = text.partition("## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head, _, *body = rows
    found = {}
    for server, *cells in body:
        values = {name: NUMBER.match(cell) for name, cell in zip(head[1:], cells, strict=True)}
        found[server] = {name: float(value[0].replace(",", "")) for name, value in values.items() if value}
    return found


def draw(path: Path, theme: Theme) -> str:
    """Draw the chart into a file."""
    figures = read_figures(RESULTS.read_text(encoding="utf-8"))
    with mpl.rc_context(STYLE):
        # Not wider: a phone shrinks the picture to its own width, and the letters with it.
        figure = Figure(figsize=(5, 3.3), facecolor=theme.paper)
        places = figure.subplots(len(PANELS), 1)
        for axes, (measure, title) in zip(places, PANELS.items(), strict=True):
            _panel(
                axes, {name: figures[key][measure] for key, name in reversed(SERVERS.items())}, title, theme
            )
        figure.subplots_adjust(left=0.25, right=0.99, top=0.92, bottom=0.01, hspace=0.32)
        figure.savefig(path, metadata={"Date": None})
    return f"{path}: {len(SERVERS)} servers"


def _panel(axes: Axes, values: dict[str, float], title: str, theme: Theme) -> None:
    names = list(values)
    colours = [theme.leader if name == SERVERS[OURS] else theme.other for name in names]
    axes.barh(names, list(values.values()), color=colours, height=0.62)
    for place, value in enumerate(values.values()):
        axes.text(value, place, f" {value:,.0f}", va="center", color=theme.ink, fontsize=9.5)
    axes.set_title(title, loc="left", color=theme.ink, fontsize=10, pad=3)
    axes.set_xlim(0, max(values.values()) * 1.18)
    axes.set_facecolor(theme.paper)
    axes.xaxis.set_visible(False)
    axes.tick_params(axis="y", length=0, labelcolor=theme.ink, labelsize=10)
    for spine in axes.spines.values():
        spine.set_visible(False)
