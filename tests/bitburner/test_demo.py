"""The demo: what it says is what happens."""

from io import StringIO

from rich.console import Console

from bridgehead.bitburner.demo import show_demo


def test_the_tour_goes_as_it_says() -> None:
    shown = StringIO()

    assert show_demo(Console(file=shown, width=100))

    assert "Restored lib/scout.js" in shown.getvalue()
    assert "Bitburner disconnected while getFileNames waited" in shown.getvalue()
    assert "+     await ns.grow(target);" in shown.getvalue()
