"""Plot: a picture of a board, the fastest on top, with every run behind the figures.

On the board of one puzzle the axis is time. Over several puzzles times cannot share an axis: there each run
stands at how many times the leader's median on the same puzzle it took. Drawn with matplotlib, an optional
extra.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridgehead.runtime.errors import BridgeError, InvalidArgument, StorageError, Unavailable

from .board import Board, Filters, Row
from .plot_text import Fonts, find_fonts
from .wording import duration, interval, measure_name, no_runs_text, notes, ratio, solved

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..workspace import Workspace

SUFFIXES = (".svg", ".png", ".pdf")
MAX_MODELS = 25
"""More rows cannot be told apart at a glance."""
MAX_DOTS = 400
"""Dots of one model; of more runs as many are drawn, evenly chosen from the fastest to the slowest."""
ENOUGH_FOR_BOX = 5

WIDTH, ROW, HEAD, AXIS, NOTE = 12.0, 0.52, 1.34, 0.72, 0.2
"""In inches: the picture, a row, what is above the rows, the axis below them, a line of notes."""
MARGIN, GAP, MAX_LABEL = 0.32, 0.26, 2.7


class Theme(Struct, frozen=True):
    """The colours of a picture."""

    paper: str
    ink: str
    faint: str
    grid: str
    leader: str
    other: str
    unsure: str


THEMES = {
    "light": Theme("#ffffff", "#17202c", "#566273", "#e3e7ed", "#0b7a6f", "#3f68b5", "#8b95a5"),
    "dark": Theme("#10161f", "#e8eef6", "#a3b0c2", "#263243", "#34d3bf", "#86aef0", "#7d899b"),
}


class Line(Struct, frozen=True):
    """One model as it is drawn: where its runs are on the axis, and the interval of its median there."""

    row: Row
    places: list[float]
    middle: float
    low: float
    high: float


def draw(workspace: Workspace, filters: Filters, path: str, theme: str = "light") -> str:
    """Draw a board into a file, and return what to tell the person who asked."""
    suffix = path[path.rfind(".") :].lower()
    if suffix not in SUFFIXES:
        raise InvalidArgument(
            f"{path} is not a picture.", next_step="Name a file that ends with .svg, .png or .pdf."
        )
    view = workspace.board_now(filters)
    rows = [row for row in view.rows if row.n and row.slower is not None]
    if not rows:
        raise Unavailable(no_runs_text(filters.llm, view.known, filters.day, view.days))
    shown = rows[:MAX_MODELS]
    lines, is_relative = _lines(workspace, filters, view.board, shown)
    said = notes(view.board)
    said += [f"Left out: {one.problem}" for one in view.skipped]
    if len(rows) > len(shown):
        said.append(f"The first {len(shown)} of {len(rows)} models.")
    title = _title(workspace.year, filters, view.board)
    _save(lines, title, said, path, suffix, THEMES[theme], is_relative=is_relative)
    return f"{path}: {len(shown)} models, {sum(row.n for row in shown)} runs"


def _title(year: int, filters: Filters, board: Board) -> str:
    day = "" if filters.day is None else f", day {filters.day}"
    phase = "" if filters.phase is None else f", phase {filters.phase}"
    return f"Advent of Code {year}{day}{phase}: {measure_name(board.measure)}"


def _lines(workspace: Workspace, filters: Filters, board: Board, rows: list[Row]) -> tuple[list[Line], bool]:
    """Work out where everything is on the axis, and whether that is relative to the leader."""
    found = workspace.tallies_now(filters, board)
    leader = found[next(row for row in board.rows if row.slower == row.low == row.high).llm]
    medians = {puzzle: max(_median(runs), 0.5) for puzzle, runs in leader.items()}
    is_relative = len({puzzle for row in rows for puzzle in found[row.llm]}) > 1
    unit = 1.0 if is_relative else next(iter(medians.values()))
    lines = []
    for row in rows:
        places = sorted(
            max(time, 0.5) / (medians[puzzle] if is_relative else 1.0)
            for puzzle, runs in found[row.llm].items()
            if puzzle in medians
            for time in runs
        )
        slower, low, high = (value or 1.0 for value in (row.slower, row.low, row.high))
        lines.append(Line(row, places, slower * unit, low * unit, high * unit))
    return lines, is_relative


def _median(ordered: list[int]) -> float:
    return (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2


# --- drawing -----------------------------------------------------------------------------------------------


def _save(
    lines: list[Line],
    title: str,
    said: list[str],
    path: str,
    suffix: str,
    theme: Theme,
    *,
    is_relative: bool,
) -> None:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise _not_installed() from missing
    fonts = find_fonts("".join(line.row.llm for line in lines))
    settings: dict[Any, Any] = {
        "font.family": fonts.families,
        "svg.fonttype": "path",
        "text.parse_math": False,  # a name with two dollar signs is not a formula
        "svg.hashsalt": "bridgehead",  # the same board gives the same bytes
    }
    with rc_context(settings):
        figure = Figure(facecolor=theme.paper)
        picture = _Picture(figure, lines, [*said, *fonts.notes], theme, fonts)
        picture.compose(title, is_relative=is_relative)
        metadata = (
            {"Date": None} if suffix == ".svg" else {"CreationDate": None} if suffix == ".pdf" else None
        )
        try:
            figure.savefig(path, format=suffix[1:], dpi=160, facecolor=theme.paper, metadata=metadata)
        except OSError as failure:
            raise StorageError(f"{path} cannot be written: {failure.strerror or failure}.") from failure


def _not_installed() -> BridgeError:
    return Unavailable(
        "Drawing needs matplotlib, which is not installed.",
        next_step='Install it with: pip install "bridgehead[plot]"',
    )


class _Picture:
    """A picture laid out in inches, from measured texts, so that nothing can stand on anything else."""

    def __init__(
        self, figure: Figure, lines: list[Line], said: list[str], theme: Theme, fonts: Fonts
    ) -> None:
        self._figure = figure
        self._lines = lines
        self._theme = theme
        self._labels = [fonts.fit(line.row.llm, MAX_LABEL, 10) for line in lines]
        self._columns = _columns([line.row for line in lines])
        self._widths = {
            heading: max(fonts.width(text, 9.5) for text in (heading, *cells))
            for heading, cells in self._columns.items()
        }
        self._notes = [part for note in said for part in fonts.wrap(note, WIDTH - 2 * MARGIN, 8.5)]
        self._left = MARGIN + 0.42 + max(fonts.width(label, 10) for label in self._labels) + GAP
        self._right = MARGIN + sum(width + GAP for width in self._widths.values())
        body = ROW * len(lines)
        self._height = HEAD + body + AXIS + NOTE * len(self._notes) + 0.25
        self._bottom = self._height - HEAD - body

    def compose(self, title: str, *, is_relative: bool) -> None:
        self._figure.set_size_inches(WIDTH, self._height)
        self._draw_runs(is_relative=is_relative)
        self._write(MARGIN, self._height - 0.36, title, fontsize=14, fontweight="bold")
        _draw_key(self._figure, self._height, self._theme)
        self._write_names()
        self._write_columns()
        for number, part in enumerate(self._notes):
            y = self._bottom - AXIS - NOTE * (number + 0.5)
            self._write(MARGIN, y, part, color=self._theme.faint, fontsize=8.5)

    def _write(self, x: float, y: float, text: str, **options: Any) -> None:
        options = {"va": "center", "color": self._theme.ink, **options}
        self._figure.text(x / WIDTH, y / self._height, text, **options)

    def _row_middle(self, place: int) -> float:
        return self._height - HEAD - ROW * (place + 0.5)

    def _draw_runs(self, *, is_relative: bool) -> None:
        width, body = WIDTH - self._left - self._right, ROW * len(self._lines)
        corner = (self._left / WIDTH, self._bottom / self._height)
        axes = self._figure.add_axes((*corner, width / WIDTH, body / self._height))
        for place, line in enumerate(self._lines):
            _draw_model(axes, place, line, self._theme)
        room = width / 0.62  # how many labels of this width have room beside each other
        _draw_axis(axes, self._lines, self._theme, int(room), is_relative=is_relative)

    def _write_names(self) -> None:
        """Write the rank and the name of each model, left of its runs."""
        faint, x = self._theme.faint, MARGIN + 0.42
        for place, (line, label) in enumerate(zip(self._lines, self._labels, strict=True)):
            y, row = self._row_middle(place), line.row
            colour = faint if row.provisional else self._theme.ink
            self._write(MARGIN + 0.24, y, str(row.rank), ha="right", color=faint, fontsize=10)
            self._write(x, y, label, color=colour, fontsize=10, linespacing=1.15)
            if row.provisional:
                lower = 0.17 if "\n" not in label else 0.26
                self._write(x, y - lower, "provisional", color=faint, fontsize=7.5, style="italic")

    def _write_columns(self) -> None:
        """Write the figures, right of the runs."""
        x = WIDTH - self._right
        for heading, cells in self._columns.items():
            x += GAP + self._widths[heading]
            top = self._height - HEAD + 0.14
            self._write(x, top, heading, ha="right", color=self._theme.faint, fontsize=9.5)
            for place, cell in enumerate(cells):
                self._write(x, self._row_middle(place), cell, ha="right", fontsize=9.5)


def _columns(rows: list[Row]) -> dict[str, list[str]]:
    columns = {
        "median": [duration(row.median or 0) for row in rows],
        "slower": [ratio(row.slower) for row in rows],
        "95 %": [interval(row) or "–" for row in rows],
        "runs": [f"{row.n:,}" for row in rows],
        "solved": [solved(row) for row in rows],
    }
    return {heading: cells for heading, cells in columns.items() if any(cells)}


def _draw_model(axes: Axes, place: int, line: Line, theme: Theme) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    row = line.row
    colour = theme.unsure if row.provisional else theme.leader if row.rank == 1 else theme.other
    dots = line.places[:: max(1, -(-len(line.places) // MAX_DOTS))]
    # One above the other in a fixed rhythm, so that the same runs always give the same picture.
    heights = [place + 0.24 * ((number * 0.618) % 1 - 0.5) * 2 for number in range(len(dots))]
    is_few = len(line.places) < ENOUGH_FOR_BOX
    axes.scatter(
        dots,
        heights,
        s=22 if is_few else 10,
        color=colour,
        alpha=0.8 if is_few else 0.5,
        linewidths=0,
        zorder=2,
    )
    if not is_few:
        quarter = len(line.places) // 4
        low, high = line.places[quarter], line.places[-quarter - 1]
        box = Rectangle((low, place - 0.26), high - low, 0.52, linewidth=1.1, zorder=3)
        box.set(facecolor=to_rgba(colour, 0.2), edgecolor=to_rgba(colour, 0.9))
        axes.add_patch(box)
    if line.low < line.high:
        axes.plot([line.low, line.high], [place + 0.36] * 2, color=theme.ink, linewidth=1.1, zorder=4)
        for end in (line.low, line.high):
            axes.plot([end] * 2, [place + 0.3, place + 0.42], color=theme.ink, linewidth=1.1, zorder=4)
    axes.plot([line.middle] * 2, [place - 0.3, place + 0.3], color=colour, linewidth=2.6, zorder=5)


def _draw_axis(axes: Axes, lines: list[Line], theme: Theme, labels: int, *, is_relative: bool) -> None:
    axes.set_facecolor(theme.paper)
    axes.set_xscale("log")
    least = min(min(line.low, line.places[0]) for line in lines)
    most = max(max(line.high, line.places[-1]) for line in lines)
    room = max((most / least) ** 0.04, 1.15)
    axes.set_xlim(least / room, most * room)
    choose = round_ratios if is_relative else round_times
    ticks = choose(least / room, most * room, labels)
    axes.set_xticks(ticks, [_tick(tick) if is_relative else duration(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", length=0, pad=5, labelcolor=theme.ink, labelsize=9)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.grid)
    axes.grid(axis="x", color=theme.grid, linewidth=0.9, zorder=0)
    axes.set_axisbelow(True)
    what = "Times the leader's median on the same puzzle" if is_relative else "Time of a run"
    axes.set_xlabel(f"{what} (logarithmic)", color=theme.faint, fontsize=9.5, labelpad=6)


def _tick(value: float) -> str:
    return f"{value:,.10g}×"


def _draw_key(figure: Figure, height: float, theme: Theme) -> None:
    """Explain the marks, in one line under the title."""
    from matplotlib.legend_handler import HandlerLine2D
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = theme.other
    handles: list[Any] = [
        Line2D([], [], marker="o", markersize=4.5, color=colour, alpha=0.7, linewidth=0, label="one run"),
        Patch(facecolor=colour, alpha=0.3, edgecolor=colour, label="middle half, from 5 runs"),
        Line2D(
            [], [], marker="|", markersize=12, markeredgewidth=2.6, color=colour, linewidth=0, label="median"
        ),
        Line2D(
            [],
            [],
            marker="|",
            markersize=6,
            color=theme.ink,
            linewidth=1.1,
            label="95 % interval of the median",
        ),
    ]
    figure.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(MARGIN / WIDTH, (height - 0.74) / height),
        borderaxespad=0,
        borderpad=0,
        ncols=len(handles),
        frameon=False,
        handler_map={handles[-1]: HandlerLine2D(numpoints=2, marker_pad=0.0)},
        fontsize=9,
        labelcolor=theme.faint,
        handlelength=1.6,
        columnspacing=2.2,
    )


def round_times(low: float, high: float, most: int) -> list[float]:
    """Choose a few times between two that people find round."""
    small = [digit * 10.0**power for power in range(5) for digit in (1, 2, 5)][:-1]  # 50 s is next to 1 min
    minutes = [60_000.0 * number for number in (1, 2, 5, 10, 30)]
    hours = [3_600_000.0 * digit * 10**power for power in range(13) for digit in (1, 2, 5)]
    units = [1, 10, 100, 1000, 10_000, 60_000, 600_000, *(3_600_000.0 * 10**power for power in range(13))]
    return _first_that_fits(([0.5, *small, *minutes, *hours], units, units[::3]), low, high, most)


def round_ratios(low: float, high: float, most: int) -> list[float]:
    """Choose a few ratios between two that people find round, 1 among them."""
    fine = [0.6, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0]
    if high / low > 4:  # noqa: PLR2004 - fewer steps say nothing of a narrow scale
        fine = []
    scales = ([digit * 10.0**power for power in range(-6, 13) for digit in digits] for digits in _DIGITS)
    return _first_that_fits((fine, *scales, [1.0]), low, high, most)


_DIGITS = ((1, 2, 5), (1, 3), (1,))


def _first_that_fits(scales: Iterable[list[float]], low: float, high: float, most: int) -> list[float]:
    """Return the steps of the finest scale that has room."""
    within: list[float] = []
    for scale in scales:
        within = [round(value, 9) for value in scale if low <= value <= high]
        if 1 < len(within) <= most:
            break
    return within
