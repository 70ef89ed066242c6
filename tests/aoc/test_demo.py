"""The demo: a tour that ends well, in a moment, and leaves nothing behind."""

import io

from rich.console import Console

from bridgehead.aoc.demo import show_demo


def test_the_tour_shows_a_ranking_of_real_calls_and_ends_well() -> None:
    out = io.StringIO()

    assert show_demo(Console(file=out, width=100))

    assert "Lanterns on the quay" in out.getvalue()
    assert "clever-fox" in out.getvalue()
