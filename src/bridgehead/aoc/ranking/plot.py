"""Plot: a picture of a board, the fastest on top, with every run behind the figures.

For one puzzle the axis is time. Times of several puzzles cannot share an axis: there each run is drawn at its
ratio to the leader's median on the same puzzle. Drawn with matplotlib, an optional extra, whose own font has
Latin, Greek and Cyrillic letters. Names in other scripts, or with emoji, use the system's fonts; a character
that no font has is drawn as an empty box, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridgehead.runtime.errors import InvalidArgument, StorageError, Unavailable

from ..files.entries import CLAIMED
from ..files.figures import median_of
from ..files.filters import Filters
from ..workspace import Workspace
from .comparison import ZERO_MS
from .standings import Board, Row
from .wording import board_title, count, dollars, duration, interval, no_runs, notes, rank, ratio, solved

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SUFFIXES = (".svg", ".png", ".pdf")
MAX_MODELS = 25
"""More rows cannot be told apart at a glance."""
MAX_DOTS = 400
"""Dots of one model; more runs are sampled evenly from the fastest to the slowest."""
ENOUGH_FOR_BOX = 5

ROW, NOTE, MARGIN, GAP, RANK = 0.52, 0.2, 0.32, 0.26, 0.58
"""In inches: the heights of a row and of a line of notes; the widths of a margin, a gap and a rank."""


class Format(Struct, frozen=True):
    """The size of a picture (in inches unless noted) and the columns that fit."""

    width: float
    head: float
    axis: float
    max_label: float
    title_points: float
    key_columns: int
    columns: tuple[str, ...] | None = None
    """The columns of figures; None is all."""


WIDE = Format(12.0, head=1.34, axis=0.72, max_label=2.7, title_points=14, key_columns=4)
NARROW = Format(5.4, head=1.54, axis=0.88, max_label=1.5, title_points=11, key_columns=2, columns=("slower",))
"""For a page that a phone may show, where a wide picture would have letters of 4 pixels."""

_BASE = "DejaVu Sans"
_PREFERRED = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Emoji", "Noto Sans")
"""Tried first; any other font of the system that has the character does too."""
_BOX = "\u25af"
_INVISIBLE = frozenset("\ufe0f\ufe0e\u200d")
"""Joiners and variation selectors, which matplotlib would draw as boxes."""
_POINTS_PER_INCH = 72.0
_UNIT = 100.0
_NOTE = "Some characters have no font here and are drawn as boxes; a Noto font would have them."


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
    """One model in axis units: its runs, its ratio to the leader and the interval of that."""

    row: Row
    places: list[float]
    middle: float
    low: float
    high: float


def draw(workspace: Workspace, filters: Filters, path: str, theme: str = "light", form: Format = WIDE) -> str:
    """Draw a board into a file; return a summary to print."""
    suffix = path[path.rfind(".") :].lower()
    if suffix not in SUFFIXES:
        raise InvalidArgument(
            f"{path} is not a picture.", next_step="Name a file that ends with .svg, .png or .pdf."
        )
    view = workspace.board_now(filters)
    rows = [row for row in view.rows if row.n and row.unranked != CLAIMED]
    if not rows:
        raise Unavailable(str(no_runs(filters.llm, view.known, filters.day, view.days)))
    lines, is_relative = _lines(workspace, filters, view.board, rows)
    shown = lines[:MAX_MODELS]
    footnotes = notes(view.board)
    footnotes += [f"Left out: {skipped.problem}" for skipped in view.skipped]
    if len(view.rows) > len(shown):
        footnotes.append(f"{len(shown)} of {len(view.rows)} rows of the board.")
    day = "" if filters.day is None else f", day {filters.day}"
    phase = "" if filters.phase is None else f", phase {filters.phase}"
    title = f"Advent of Code {workspace.year}{day}{phase}: {board_title(view.board).lower()}"
    _save(shown, title, footnotes, path, suffix, THEMES[theme], form=form, is_relative=is_relative)
    return f"{path}: {count(len(shown), 'model')}, {count(sum(line.row.n for line in shown), 'run')}"


def _lines(workspace: Workspace, filters: Filters, board: Board, rows: list[Row]) -> tuple[list[Line], bool]:
    """Convert runs and intervals to axis units; return also whether these are ratios to the leader.

    A model that shares no puzzle with the leader has no ratio and is left out.
    """
    times_of = workspace.times_now(filters, board)
    # Without ranks, the model with the most puzzles serves as the leader.
    leader = times_of(next((row for row in board.rows if row.slower is not None), rows[0]))
    medians = {puzzle: max(median_of(runs), ZERO_MS) for puzzle, runs in leader.items()}
    times = [(row, times_of(row)) for row in rows]
    is_relative = len({puzzle for _, row_times in times for puzzle in row_times}) > 1
    unit = 1.0 if is_relative else next(iter(medians.values()))
    lines = []
    for row, row_times in times:
        places = sorted(
            max(time, ZERO_MS) / (medians[puzzle] if is_relative else 1.0)
            for puzzle, runs in row_times.items()
            if puzzle in medians
            for time in runs
        )
        if not places:
            continue
        middle = places[len(places) // 2] if row.slower is None else row.slower * unit
        low, high = (middle if end is None else end * unit for end in (row.low, row.high))
        lines.append(Line(row, places, middle, low, high))
    return lines, is_relative


# --- drawing -----------------------------------------------------------------------------------------------


def _save(
    lines: list[Line],
    title: str,
    footnotes: list[str],
    path: str,
    suffix: str,
    theme: Theme,
    *,
    form: Format,
    is_relative: bool,
) -> None:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise Unavailable(
            "Drawing needs matplotlib, which is not installed.",
            next_step='Install it with: pip install "bridgehead[plot]"',
        ) from missing
    fonts = find_fonts("".join(line.row.llm for line in lines))
    settings: dict[Any, Any] = {
        "font.family": fonts.families,
        "svg.fonttype": "path",
        "text.parse_math": False,  # a name with two dollar signs is not a formula
        "svg.hashsalt": "bridgehead",  # the same board gives the same bytes
    }
    with rc_context(settings):
        figure = Figure(facecolor=theme.paper)
        picture = _Picture(figure, lines, [*footnotes, *fonts.notes], theme, fonts, form)
        picture.compose(title, is_relative=is_relative)
        # Without dates: the same board gives the same bytes.
        metadata = (
            {"Date": None} if suffix == ".svg" else {"CreationDate": None} if suffix == ".pdf" else None
        )
        try:
            figure.savefig(path, format=suffix[1:], dpi=160, facecolor=theme.paper, metadata=metadata)
        except OSError as failure:
            raise StorageError(f"{path} cannot be written: {failure.strerror or failure}.") from failure


class _Picture:
    """A picture laid out in inches, from the measured widths of its texts, so that nothing overlaps."""

    def __init__(
        self,
        figure: Figure,
        lines: list[Line],
        footnotes: list[str],
        theme: Theme,
        fonts: Fonts,
        form: Format,
    ) -> None:
        self._figure = figure
        self._form = form
        self._lines = lines
        self._theme = theme
        self._labels = [fonts.fit(line.row.llm, form.max_label, 10) for line in lines]
        columns = _columns([line.row for line in lines])
        self._columns = {name: columns[name] for name in form.columns or columns}
        self._widths = {
            heading: max(fonts.width(text, 9.5) for text in (heading, *cells))
            for heading, cells in self._columns.items()
        }
        self._notes = [part for note in footnotes for part in fonts.wrap(note, form.width - 2 * MARGIN, 8.5)]
        self._left = MARGIN + RANK + max(fonts.width(label, 10) for label in self._labels) + GAP
        self._right = MARGIN + sum(width + GAP for width in self._widths.values())
        body = ROW * len(lines)
        self._height = form.head + body + form.axis + NOTE * len(self._notes) + 0.25
        self._bottom = self._height - form.head - body

    def compose(self, title: str, *, is_relative: bool) -> None:
        form = self._form
        self._figure.set_size_inches(form.width, self._height)
        width, body = form.width - self._left - self._right, ROW * len(self._lines)
        corner = (self._left / form.width, self._bottom / self._height)
        axes = self._figure.add_axes((*corner, width / form.width, body / self._height))
        for place, line in enumerate(self._lines):
            _draw_model(axes, place, line, self._theme)
        room = width / 0.62  # a label of the axis takes up to 0.62 inches
        _draw_axis(axes, self._lines, self._theme, int(room), is_relative=is_relative)
        what = "Times the leader's median on the same puzzle" if is_relative else "Time of a run"
        label = f"{what} (logarithmic)"
        if form is NARROW:  # the axis is shorter than its label
            label = label.replace(" on ", "\non ")
        axes.set_xlabel(label, color=self._theme.faint, fontsize=9.5, labelpad=6)
        self._write(MARGIN, self._height - 0.36, title, fontsize=form.title_points, fontweight="bold")
        _draw_key(self._figure, self._height, self._theme, form)
        # Left of the runs: rank and name.
        faint, x = self._theme.faint, MARGIN + RANK
        for place, (line, label) in enumerate(zip(self._lines, self._labels, strict=True)):
            y, row = self._row_middle(place), line.row
            colour = faint if row.rank is None else self._theme.ink
            self._write(MARGIN + RANK - 0.12, y, rank(row), ha="right", color=faint, fontsize=10)
            self._write(x, y, label, color=colour, fontsize=10, linespacing=1.15)
            if row.unranked is not None:
                lower = 0.17 if "\n" not in label else 0.26
                self._write(x, y - lower, row.unranked, color=faint, fontsize=7.5, style="italic")

        # Right of the runs: the figures.
        x = form.width - self._right
        for heading, cells in self._columns.items():
            x += GAP + self._widths[heading]
            top = self._height - form.head + 0.14
            self._write(x, top, heading, ha="right", color=self._theme.faint, fontsize=9.5)
            for place, cell in enumerate(cells):
                self._write(x, self._row_middle(place), cell, ha="right", fontsize=9.5)
        for number, part in enumerate(self._notes):
            y = self._bottom - form.axis - NOTE * (number + 0.5)
            self._write(MARGIN, y, part, color=faint, fontsize=8.5)

    def _write(self, x: float, y: float, text: str, **options: Any) -> None:
        options = {"va": "center", "color": self._theme.ink, **options}
        self._figure.text(x / self._form.width, y / self._height, text, **options)

    def _row_middle(self, place: int) -> float:
        return self._height - self._form.head - ROW * (place + 0.5)


def _columns(rows: list[Row]) -> dict[str, list[str]]:
    columns = {
        "median": [duration(row.median or 0) for row in rows],
        "slower": [ratio(row.slower) for row in rows],
        "95 %": [interval(row) or "–" for row in rows],
        "runs": [f"{row.n:,}" for row in rows],
        "solved / failed": [solved(row) for row in rows],
        "wrong": [f"{row.wrong:,}" if row.solved or row.failed else "" for row in rows],
        "cost / attempt": ["" if row.cost_usd is None else dollars(row.cost_usd) for row in rows],
    }
    return {heading: cells for heading, cells in columns.items() if any(cells)}


def _draw_model(axes: Axes, place: int, line: Line, theme: Theme) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    row = line.row
    colour = theme.unsure if row.rank is None else theme.leader if row.rank == 1 else theme.other
    dots = line.places[:: max(1, -(-len(line.places) // MAX_DOTS))]
    # Vertical jitter from a fixed sequence (multiples of the golden ratio), not random: the same runs always
    # give the same picture.
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
    lowest = min(min(line.low, line.places[0]) for line in lines)
    highest = max(max(line.high, line.places[-1]) for line in lines)
    room = max((highest / lowest) ** 0.04, 1.15)
    axes.set_xlim(lowest / room, highest * room)
    choose = round_ratios if is_relative else round_times
    ticks = choose(lowest / room, highest * room, labels)
    axes.set_xticks(ticks, [f"{tick:,.10g}×" if is_relative else duration(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", length=0, pad=5, labelcolor=theme.ink, labelsize=9)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.grid)
    axes.grid(axis="x", color=theme.grid, linewidth=0.9, zorder=0)
    axes.set_axisbelow(True)


def _draw_key(figure: Figure, height: float, theme: Theme, form: Format) -> None:
    """Explain the marks under the title."""
    from matplotlib.legend_handler import HandlerLine2D
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = theme.other
    handles: list[Any] = [
        Line2D([], [], marker="o", markersize=4.5, color=colour, alpha=0.7, linewidth=0, label="one run"),
        Patch(facecolor=colour, alpha=0.3, edgecolor=colour, label="middle half, from 5 runs"),
        Line2D(
            [],
            [],
            marker="|",
            markersize=12,
            markeredgewidth=2.6,
            color=colour,
            linewidth=0,
            label="per solved answer",
        ),
        Line2D(
            [],
            [],
            marker="|",
            markersize=6,
            color=theme.ink,
            linewidth=1.1,
            label="95 % interval",
        ),
    ]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(MARGIN / form.width, (height - 0.66) / height),
        borderaxespad=0,
        borderpad=0,
        ncols=form.key_columns,
        frameon=False,
        handler_map={handles[-1]: HandlerLine2D(numpoints=2, marker_pad=0.0)},
        fontsize=9,
        labelcolor=theme.faint,
        handlelength=1.6,
        columnspacing=2.2,
    )


def round_times(low: float, high: float, limit: int) -> list[float]:
    """Choose up to `limit` round times within a range, for the axis."""
    # Without 50 s, which is too close to 1 min.
    small = [digit * 10.0**power for power in range(5) for digit in (1, 2, 5)][:-1]
    minutes = [60_000.0 * number for number in (1, 2, 5, 10, 30)]
    hours = [3_600_000.0 * digit * 10**power for power in range(13) for digit in (1, 2, 5)]
    units = [1, 10, 100, 1000, 10_000, 60_000, 600_000, *(3_600_000.0 * 10**power for power in range(13))]
    return _first_that_fits(([0.5, *small, *minutes, *hours], units, units[::3]), low, high, limit)


def round_ratios(low: float, high: float, limit: int) -> list[float]:
    """Choose up to `limit` round ratios within a range, for the axis; 1 is among them."""
    fine = [0.6, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0]
    if high / low > 4:  # noqa: PLR2004 - a wide range needs coarser steps
        fine = []
    scales = ([digit * 10.0**power for power in range(-6, 13) for digit in digits] for digits in _DIGITS)
    return _first_that_fits((fine, *scales, [1.0]), low, high, limit)


_DIGITS = ((1, 2, 5), (1, 3), (1,))


def _first_that_fits(scales: Iterable[list[float]], low: float, high: float, limit: int) -> list[float]:
    """Return the steps of the finest scale that has at most `limit` of them in the range."""
    within: list[float] = []
    for scale in scales:
        within = [round(value, 9) for value in scale if low <= value <= high]
        if 1 < len(within) <= limit:
            break
    return within


# --- fonts -------------------------------------------------------------------------------------------------


class Fonts:
    """The fonts of one picture."""

    def __init__(self, families: list[str], missing: frozenset[str]) -> None:
        self.families = families
        self._missing = missing
        self.notes = [_NOTE] if missing else []

    def clean(self, text: str) -> str:
        """Replace characters that no font has with boxes; drop invisible ones."""
        kept = (character for character in text if character not in _INVISIBLE)
        return "".join(_BOX if character in self._missing else character for character in kept)

    def width(self, text: str, size: float) -> float:
        """Return the width of a text's widest line in inches; `size` is in points."""
        families = tuple(self.families)
        widths = (sum(_advance(character, families) for character in line) for line in text.split("\n"))
        return max(widths) * size / _POINTS_PER_INCH

    def fit(self, text: str, limit: float, size: float) -> str:
        """Break a text into at most two lines of at most `limit` inches; cut off the rest."""
        whole = self.clean(text)
        if self.width(whole, size) <= limit:
            return whole
        first = self._head(whole, limit, size)
        rest = whole[len(first) :]
        if self.width(rest, size) > limit:
            rest = self._head(rest, limit - self.width("…", size), size) + "…"
        return f"{first}\n{rest.strip()}"

    def _head(self, text: str, limit: float, size: float) -> str:
        """Return the longest prefix that fits; end it at a word if that keeps more than half of it."""
        end = len(text)
        while end > 1 and self.width(text[:end], size) > limit:
            end -= 1
        at = max(text.rfind(mark, 0, end) for mark in " -/_:")
        return text[: at + 1] if at > end // 2 else text[:end]

    def wrap(self, text: str, limit: float, size: float) -> list[str]:
        """Break a text into lines of at most `limit` inches."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size) > limit:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines


def find_fonts(text: str) -> Fonts:
    """Choose fonts that together have as many characters of a text as the system's fonts can offer."""
    needed = {c for c in text if not c.isascii() and c not in _INVISIBLE and not c.isspace()}
    files = _font_files()
    needed -= _characters(files[_BASE])
    families = [_BASE]
    others = [name for name in files if name not in {_BASE, *_PREFERRED}]
    for name in [*(name for name in _PREFERRED if name in files), *sorted(others)]:
        if not needed:
            break
        available = needed & _characters(files[name])
        if available:
            families.append(name)
            needed -= available
    return Fonts(families, frozenset(needed))


@lru_cache(maxsize=1)
def _font_files() -> dict[str, str]:
    """Return the file of each font family, upright and regular if there is one."""
    from matplotlib.font_manager import fontManager

    plain = sorted(
        fontManager.ttflist, key=lambda font: (font.style != "normal", font.weight not in {400, "normal"})
    )
    files: dict[str, str] = {}
    for font in plain:
        if "Last Resort" not in font.name:  # that font has a box for every character
            files.setdefault(font.name, font.fname)
    return files


@lru_cache(maxsize=1024)
def _characters(file: str) -> frozenset[str]:
    """Return the characters that a font can draw; none if matplotlib cannot use it."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(file)
        return frozenset(map(chr, font.get_charmap())) if font.scalable else frozenset()
    except (RuntimeError, ValueError, OSError):
        return frozenset()  # a colour emoji font, for example


@lru_cache(maxsize=4096)
def _advance(character: str, families: tuple[str, ...]) -> float:
    """Return how far a character moves the pen, in units of the font's size."""
    from matplotlib.font_manager import get_font
    from matplotlib.ft2font import LoadFlags

    files = _font_files()
    for family in families:
        if character in _characters(files[family]):
            font = get_font(files[family])
            font.set_size(_UNIT, _POINTS_PER_INCH)
            glyph = font.load_char(ord(character), flags=LoadFlags.NO_HINTING)
            # FreeType gives it as 16.16 fixed point.
            return float(glyph.linearHoriAdvance) / 65536 / _UNIT
    return 1.0
