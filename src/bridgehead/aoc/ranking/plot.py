"""Plot: a picture of each model's times, on a logarithmic axis, the fastest on top.

Every run is a dot, the box holds the middle half of them, the line in it is the median. Drawn with
matplotlib, which is an optional extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bridgehead.runtime.errors import BridgeError, InvalidArgument, StorageError, Unavailable

from .board import Filters, Row
from .rendering import NO_RUNS, UNEVEN, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..event import Event

SUFFIXES = (".svg", ".png")
MAX_MODELS = 25
"""More rows cannot be told apart at a glance."""
MAX_DOTS = 400
"""Dots of one model; of more runs as many are drawn, evenly chosen from the fastest to the slowest."""
MAX_NAME = 36
MAX_TICKS = 12
_BEST, _OTHER, _INK, _FAINT = "#0f766e", "#64748b", "#0f172a", "#94a3b8"


def draw(event: Event, filters: Filters, path: str) -> str:
    """Draw the models' times into a file, and return what to tell the person who asked."""
    if not path.endswith(SUFFIXES):
        raise InvalidArgument(f"{path} is no picture.", next_step="Name a file that ends with .svg or .png.")
    board = event.board_now(filters)
    if not board.rows:
        raise Unavailable(NO_RUNS)
    rows = board.rows[:MAX_MODELS]
    times_of = event.times_now(filters)
    notes = [] if board.is_even else [UNEVEN]
    if len(board.rows) > len(rows):
        notes.append(f"The fastest {len(rows)} of {len(board.rows)} models.")
    _save(rows, [times_of[row.llm] for row in rows], _title(event.year, filters), notes, path)
    return f"{path}: {len(rows)} models, {sum(row.n for row in rows)} runs"


def _title(year: int, filters: Filters) -> str:
    day = "" if filters.day is None else f", day {filters.day}"
    phase = "" if filters.phase is None else f", phase {filters.phase}"
    return f"Solving times, Advent of Code {year}{day}{phase}"


def _save(rows: list[Row], runs: list[list[int]], title: str, notes: list[str], path: str) -> None:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise _not_installed() from missing
    height = 1.5 + 0.5 * len(rows)
    with rc_context({"font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = Figure(figsize=(10, height), layout="constrained")
        axes = figure.subplots()
        for place, (row, ordered) in enumerate(zip(rows, runs, strict=True)):
            _draw_model(axes, place, row, ordered)
        _draw_axes(axes, rows, title)
        if notes:
            figure.supxlabel("  ".join(notes), fontsize=8, color=_FAINT, ha="left", x=0.01)
        try:
            figure.savefig(path, dpi=160, bbox_inches="tight", pad_inches=0.2)
        except OSError as failure:
            raise StorageError(f"{path} cannot be written: {failure.strerror or failure}.") from failure


def _not_installed() -> BridgeError:
    return Unavailable(
        "Drawing needs matplotlib, which is not installed.",
        next_step='Install it with: pip install "bridgehead[plot]"',
    )


def _draw_model(axes: Axes, place: int, row: Row, ordered: list[int]) -> None:
    colour = _BEST if row.rank == 1 else _OTHER
    shown = [max(time, 1) for time in ordered]  # zero has no place on a logarithmic axis
    step = max(1, -(-len(shown) // MAX_DOTS))
    dots = shown[::step]
    # Dots one above the other in a fixed rhythm, so that the same runs always give the same picture.
    rows = [place + 0.3 * ((number * 0.618) % 1 - 0.5) * 2 for number in range(len(dots))]
    axes.scatter(dots, rows, s=9, color=colour, alpha=0.35, linewidths=0, zorder=2)
    quarter, three_quarters = shown[len(shown) // 4], shown[-(len(shown) // 4) - 1]
    axes.plot(
        [quarter, three_quarters],
        [place, place],
        color=colour,
        linewidth=9,
        alpha=0.35,
        zorder=3,
        solid_capstyle="butt",
    )
    axes.plot([max(row.median, 1)] * 2, [place - 0.3, place + 0.3], color=colour, linewidth=2.5, zorder=4)


def _draw_axes(axes: Axes, rows: list[Row], title: str) -> None:
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = round_times(low, high)
    axes.set_xticks(ticks, [duration(tick) for tick in ticks], color=_INK)
    axes.set_xticks([], minor=True)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [_named(row) for row in rows], color=_INK)
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(axis="x", color="#e2e8f0", zorder=0)
    for x, (heading, cells) in zip((1.1, 1.2, 1.28), _columns(rows).items(), strict=True):
        beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
        axes.text(x, -0.55, heading, color=_FAINT, fontsize=8, **beside)
        for place, cell in enumerate(cells):
            axes.text(x, place, cell, color=_INK, fontsize=9, **beside)
    axes.set_title(title, loc="left", color=_INK, fontsize=13, fontweight="bold", pad=12)


def _named(row: Row) -> str:
    name = row.llm if len(row.llm) <= MAX_NAME else row.llm[: MAX_NAME - 1] + "…"
    return f"{row.rank}. {name}".replace("$", r"\$")  # matplotlib would take two of them for a formula


def _columns(rows: list[Row]) -> dict[str, list[str]]:
    return {
        "median": [duration(row.median) for row in rows],
        "of best": [times(row.slower) for row in rows],
        "runs": [f"{row.n:,}" for row in rows],
    }


def round_times(low: float, high: float) -> list[float]:
    """Choose a few times between two that people find round."""
    small = [digit * 10.0**power for power in range(5) for digit in (1, 2, 5)][:-1]  # 50 s is next to 1 min
    minutes = [60_000.0 * number for number in (1, 2, 5, 10, 30)]
    hours = [3_600_000.0 * digit * 10**power for power in range(13) for digit in (1, 2, 5)]
    within = [time for time in (*small, *minutes, *hours) if low <= time <= high]
    return within[:: -(-len(within) // MAX_TICKS) or 1]


def duration(milliseconds: float) -> str:
    """Write a time in the unit that suits its size."""
    for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds:.3g} ms"
