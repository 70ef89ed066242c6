"""Charts: pictures that say the same in words."""

from typing import Any

import pytest

from bridgehead.host.dashboard.charts import Series, draw_bars, draw_columns, draw_lines, draw_meter, round_up
from bridgehead.host.dashboard.templates import _ENVIRONMENT
from bridgehead.runtime.findings import ChartBar
from tests.host.dashboard.test_templates import read


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.0031, 0.004), (0.9, 1), (1, 1), (4.4, 5), (7, 8), (10, 10), (101, 150)]
)
def test_an_axis_ends_at_a_number_that_is_easily_read(value: float, top: float) -> None:
    assert round_up(value) == pytest.approx(top)


CHARTS: Any = _ENVIRONMENT.get_template("charts.html").module


def test_a_gap_in_a_line_is_a_gap() -> None:
    page = read(CHARTS.lines(draw_lines("Calls", [Series("a", [1.0, None, 2.0, 4.0])], str, since="then")))

    lines = [attributes["d"] for name, attributes in page.elements if name == "path"]
    assert lines == ["M0 75h.01", "M2 50L3 0"]


def test_a_chart_without_a_value_says_so_instead_of_showing_bare_axes() -> None:
    page = read(CHARTS.lines(draw_lines("Calls", [Series("a", [None, None])], str, since="2 h ago")))

    assert "Nothing yet." in page.text
    assert "2 h ago" not in page.text
    assert [name for name, _ in page.elements if name == "svg"] == []


def test_whoever_does_not_see_a_chart_is_told_what_it_shows() -> None:
    page = read(
        CHARTS.lines(
            draw_lines("Calls", [Series("<b>", [1.0, 3.0, 2.0]), Series("none", [None])], str, since="then")
        )
    )

    (label,) = [attributes["aria-label"] for name, attributes in page.elements if name == "svg"]
    assert label == "Calls, since then. <b>: now 2.0, at most 3.0; none: now –, at most none."


def test_bars_are_as_long_as_their_values() -> None:
    bars = [ChartBar("<i>", 4.0, "4×"), ChartBar("b", 1.0, "1×"), ChartBar("c", 0.0, "0×")]
    page = read(CHARTS.bars(draw_bars("Ranking", bars)))

    widths = [attributes["width"] for name, attributes in page.elements if name == "rect"]
    assert widths == ["100%", "25%", "0.4%"]
    assert page.text == "Ranking<i>4×b1×c0×"


def test_columns_stand_on_the_ground_and_name_their_values() -> None:
    page = read(CHARTS.bars(draw_columns("Days", [ChartBar("1st", 1.0, "one"), ChartBar("2nd", 2.0, "two")])))

    columns = [attributes for name, attributes in page.elements if name == "rect"]
    assert [(one["y"], one["height"]) for one in columns] == [("50", "50"), ("0", "100")]
    assert any(attributes.get("aria-label") == "Days. 1st: one; 2nd: two." for _, attributes in page.elements)
    assert "Nothing yet" in draw_columns("Days", []).label


@pytest.mark.parametrize(
    ("value", "level"), [(0, "low"), (69, "low"), (70, "middle"), (90, "high"), (200, "high")]
)
def test_a_meter_warns_before_it_is_full(value: float, level: str) -> None:
    page = read(CHARTS.meter(draw_meter("sessions", value, 100, f"{value} of 100")))

    (bar,) = [attributes for name, attributes in page.elements if name == "rect"]
    assert (bar["class"], bar["width"]) == (level, f"{min(100, value)}%")
