"""LiveProgress: what a person sees of a call under way; of a long text, its end."""

import io
import time

import pytest
from rich.console import Console

from bridgehead.commands.live_progress import LiveProgress, Tail
from tests.support.waiting import PATIENCE

HEIGHT = 10


def terminal() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=True, width=40, height=HEIGHT, color_system=None), out


def shown(text: str) -> list[str]:
    console, out = terminal()
    console.print(Tail(text), end="")
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_of_a_text_longer_than_the_screen_the_end_is_shown() -> None:
    lines = shown("".join(f"line {number}\n" for number in range(100)) + "the newest")

    assert lines == [*(f"line {number}" for number in range(92, 100)), "the newest"]


def test_a_short_text_is_shown_whole() -> None:
    assert shown("one\ntwo") == ["one", "two"]


def test_a_text_without_line_breaks_is_broken_and_its_end_is_shown() -> None:
    words = " ".join(f"word{number:05}" for number in range(5000))
    lines = shown(words)

    assert len(lines) == HEIGHT - 1
    assert lines[-1].endswith("word04999")
    assert all(len(line) <= 40 for line in lines)


def test_lines_stay_where_they_are_while_a_text_grows() -> None:
    words = " ".join(f"word{number:05}" for number in range(1000))

    assert shown(words + " and")[:-1] == shown(words)[1:]


@pytest.mark.parametrize("replaces", [True, False])
def test_a_stream_of_many_lines_unfolds_to_its_end(*, replaces: bool) -> None:
    console, out = terminal()
    with LiveProgress(console, replaces=replaces) as live_progress:
        said = ""
        for number in range(100):
            said = said * replaces + f"line {number}\n"
            live_progress.show(
                {"method": "notifications/progress", "params": {"progress": 1, "message": said}}
            )
        until = time.monotonic() + PATIENCE
        while "line 99" not in out.getvalue():
            assert time.monotonic() < until
            time.sleep(0.01)
