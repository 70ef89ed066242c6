"""The pictures of the documents: self-contained, and drawn from the figures that were measured."""

import re
from pathlib import Path

import pytest
from rich.text import Text

pytest.importorskip("matplotlib")  # which cannot be had everywhere

from docs import chart, terminal

ROOT = Path(__file__).parents[1]
PICTURES = sorted((ROOT / "docs" / "images").glob("*.svg"))
REQUEST = re.compile(r"(?:href|src)=[\"']https?:|url\([\"']?https?:|@import")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_loads_nothing_from_elsewhere(picture: Path) -> None:
    assert REQUEST.findall(picture.read_text(encoding="utf-8")) == []


def test_the_chart_takes_its_figures_from_the_results_of_the_bench() -> None:
    figures = chart.read_figures(chart.RESULTS.read_text(encoding="utf-8"))

    assert {measure for values in figures.values() for measure in values} >= chart.PANELS.keys()
    assert all(figures[server].keys() >= chart.PANELS.keys() for server in chart.SERVERS)


def test_a_figure_is_read_without_its_unit_and_ratio() -> None:
    table = "| server | cold start |\n| --- | --- |\n| FastMCP | 1,378 ms (0.061×) |\n\n## Targets\n"

    assert chart.read_figures(table) == {"FastMCP": {"cold start": 1378.0}}


def test_a_recording_has_a_scene_for_each_bold_sentence() -> None:
    output = "\x1b[1mWho is fastest?\x1b[0m\n  → leaderboard()\n\n\x1b[1mA gap.\x1b[0m\n──────\nrank  model\n"

    found = {title: [line.plain for line in lines] for title, lines in terminal.scenes(output) if title}

    assert found == {
        "Who is fastest?": ["Who is fastest?", "  → leaderboard()"],
        "A gap.": ["A gap.", "rank  model"],
    }


def test_every_line_of_a_recording_is_in_its_picture() -> None:
    picture = terminal.draw([[Text("first")], [Text("second")]])

    assert "first" in picture
    assert "second" in picture
    assert "animation" not in picture  # a reader sees all of it at once
