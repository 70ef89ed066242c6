"""The demo: it runs and holds what it says."""

import io

from rich.console import Console

from bridgehead.mercury.demo import show_demo


def test_the_tour_shows_streams_code_and_care_and_holds_what_it_says() -> None:
    shown = io.StringIO()

    assert show_demo(Console(file=shown, width=110, force_terminal=True))

    text = shown.getvalue()
    for words in ("as it arrives", "gets clearer", "total += item", "BUDGET_EXCEEDED"):
        assert words in text
    assert "tokens a second" not in text, "that would be the simulator's speed"
