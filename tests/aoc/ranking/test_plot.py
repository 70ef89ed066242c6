"""Plot: what is in the picture, and that nothing in it stands on anything else."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.ranking import plot, wording
from bridgehead.aoc.ranking.plot import find_fonts
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import open_workspace
from tests.aoc.data import Data, entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 10.0
LONG = "claude-opus-4.5-thinking-high-20251101-preview-with-an-unusually-long-name"
HOSTILE = {
    "x": 1,
    "claude-opus-4.5-thinking-high-20251101-preview-with-an-unusually-long-name-that-goes-on": 1.5,
    "一个名字非常非常非常非常非常非常非常非常非常长的模型": 2,
    "🦊 fox 🚀": 150,
    "$a$ and $b$": 90_000,
    "W" * 60: 3,
}


@pytest.fixture
def hostile(data: Data) -> Data:
    for day in (1, 2):
        data.put_speeds(
            day,
            [
                entry(name, round(slower * time * day))
                for name, slower in HOSTILE.items()
                for time in (range(900, 1500, 50) if name != "🦊 fox 🚀" else (1000, 1100))
            ],
        )
    return data


def drawn(
    data: Data,
    monkeypatch: pytest.MonkeyPatch,
    theme: str = "light",
    form: plot.Format = plot.WIDE,
    **filters: Any,
) -> Figure:
    """Draw a board and catch the figure before it is written."""
    from matplotlib.figure import Figure  # 0.4 s, which workers without this file need not spend

    caught: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: caught.append(figure))
    workspace = open_workspace(AocSettings(data.environment()))
    plot.draw(workspace, Filters(**filters), "board.svg", theme, form)
    return caught[0]


def texts(figure: Figure) -> list[tuple[str, Any]]:
    """Return every text with the box that it fills."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    (axes,) = figure.axes
    found = [*figure.texts, *axes.get_xticklabels(), axes.xaxis.label, *figure.legends[0].get_texts()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in found if text.get_text()]


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(("theme", "form"), [("light", plot.WIDE), ("dark", plot.NARROW)])
@pytest.mark.parametrize("filters", [{}, {"day": 1, "phase": 1}], ids=["all", "one puzzle"])
def test_no_text_stands_on_another_or_leaves_the_picture(
    hostile: Data,
    monkeypatch: pytest.MonkeyPatch,
    theme: str,
    form: plot.Format,
    filters: dict[str, int],
) -> None:
    figure = drawn(hostile, monkeypatch, theme, form, **filters)

    for (one, box), (other, other_box) in combinations(texts(figure), 2):
        assert not box.shrunk(0.98, 0.9).overlaps(other_box.shrunk(0.98, 0.9)), (one, other)
    for text, box in texts(figure):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width, text
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height, text


def test_boxes_are_drawn_only_from_five_runs_on_and_points_otherwise(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.put_speeds(
        1, [*(entry("many", 100 + number) for number in range(5)), entry("few", 90), entry("few", 95)]
    )

    from matplotlib.patches import Rectangle

    (axes,) = drawn(data, monkeypatch).axes

    assert len([patch for patch in axes.patches if isinstance(patch, Rectangle)]) == 1
    offsets: list[Any] = [dots.get_offsets() for dots in axes.collections]
    assert sorted(len(places) for places in offsets) == [2, 5]


def test_the_picture_explains_its_marks_axes_and_method(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in (1, 2):
        data.put_speeds(day, [entry(llm, time) for llm in ("a", "b") for time in range(100, 160, 10)])

    said = [text for text, _ in texts(drawn(data, monkeypatch))]
    of_one_puzzle = [text for text, _ in texts(drawn(data, monkeypatch, day=1, phase=1))]

    for words in ("one run", "middle half, from 5 runs", "per solved answer", "95 % interval"):
        assert words in said
    assert "Times the leader's median on the same puzzle (logarithmic)" in said
    assert "Time of a run (logarithmic)" in of_one_puzzle
    assert any(text.startswith("All the time an agent took, failures included") for text in said)


def test_the_figures_in_the_picture_are_those_of_the_board(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alice is twice as fast as Bob on both days, with few runs where he has many."""
    data.put_speeds(
        1, [*(entry("Alice", 100 + n) for n in range(2)), *(entry("Bob", 200 + n) for n in range(18))]
    )
    data.put_speeds(
        2, [*(entry("Alice", 10_000 + n) for n in range(18)), *(entry("Bob", 20_000 + n) for n in range(2))]
    )
    board = open_workspace(AocSettings(data.environment())).board_now(Filters()).board

    said = " ".join(text for text, _ in texts(drawn(data, monkeypatch)))

    assert [row.llm for row in board.rows] == ["Alice", "Bob"]
    for row in board.rows:
        assert row.llm in said
        assert wording.ratio(row.slower) in said
        assert wording.interval(row) in said
        assert wording.duration(row.median or 0) in said


def test_the_same_records_give_the_same_picture(data: Data, tmp_path: Path) -> None:
    data.put_speeds(1, [entry(llm, time) for llm in ("a", "b") for time in range(100, 160, 10)])
    workspace = open_workspace(AocSettings(data.environment()))

    for name in ("one.svg", "two.SVG"):
        plot.draw(workspace, Filters(), str(tmp_path / name))

    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.SVG").read_bytes()


@pytest.mark.parametrize(("low", "high"), [(0.4, 300), (0.9, 1.3), (0.5, 3.5), (1e-5, 1e9), (1, 1.05)])
def test_ratios_on_the_axis_are_round_and_few_with_one_among_them(low: float, high: float) -> None:
    ticks = plot.round_ratios(low, high, 8)

    assert 1.0 in ticks
    assert all(one < other for one, other in pairwise(ticks))
    assert len(ticks) <= 10


# --- fonts: every name can be drawn, on at most two lines, and no wider than there is room ------------------


def test_characters_that_no_font_has_are_drawn_as_boxes_with_a_note() -> None:
    fonts = find_fonts("fox \U0010fffd")

    assert fonts.clean("fox \U0010fffd") == "fox ▯"
    assert "drawn as boxes" in fonts.notes[0]
    assert find_fonts("Grüße, Мир").notes == []


def test_joiners_and_variants_are_left_out_instead_of_drawn_as_boxes() -> None:
    assert find_fonts("a").clean("a\ufe0fb\u200dc") == "abc"


def test_a_text_is_as_wide_as_its_widest_line_and_grows_with_its_size() -> None:
    fonts = find_fonts("")

    assert fonts.width("iii\nWWW\ni", SIZE) == fonts.width("WWW", SIZE) > fonts.width("iii", SIZE)
    assert fonts.width("WWW", 2 * SIZE) == pytest.approx(2 * fonts.width("WWW", SIZE))


def test_a_name_that_fits_stays_on_one_line() -> None:
    assert find_fonts("").fit("gpt4", 1.0, SIZE) == "gpt4"


def test_a_longer_name_breaks_where_a_word_ends() -> None:
    fonts = find_fonts("")

    first, second = fonts.fit("claude-opus-4.5-thinking", 1.0, SIZE).split("\n")

    assert first + second == "claude-opus-4.5-thinking"
    assert first.endswith("-")


@pytest.mark.parametrize("name", [LONG, "W" * 60, "x" * 500])
def test_what_does_not_fit_on_two_lines_is_cut_off_with_a_sign(name: str) -> None:
    fonts = find_fonts("")

    fitted = fonts.fit(name, 1.0, SIZE)

    assert fitted.count("\n") == 1
    assert fitted.endswith("…")
    assert fonts.width(fitted, SIZE) <= 1.0


def test_a_sentence_is_wrapped_between_its_words_and_loses_none() -> None:
    fonts = find_fonts("")
    sentence = "Ranked by the geometric mean of the ratios to the leader on puzzles that both ran"

    lines = fonts.wrap(sentence, 1.5, SIZE)

    assert " ".join(lines) == sentence
    assert len(lines) > 2
    assert all(fonts.width(line, SIZE) <= 1.5 for line in lines)
