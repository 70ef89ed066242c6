"""Live progress: shows on a terminal a call's progress: a bar where its end is known, its words as they come.

Nothing of it stays: when the call ends the terminal is as before, and the answer follows.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.text import Text

_WIDTH = 40


class Tail:
    """The end of a text that grows: as much of it as the terminal has room for."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width * console.height
        # What is cut off is so many times the room, so that lines break at the same places while it grows.
        start = max(0, len(self._text) - room) // (4 * room) * (4 * room)
        lines = console.render_lines(Text(self._text[start:]), options, pad=False)
        for line in lines[1 - console.height :]:
            yield from line
            yield Segment.line()


class LiveProgress:
    """The progress of one call, on a console."""

    def __init__(self, console: Console, *, replaces: bool = False) -> None:
        self._live = Live(console=console, transient=True, refresh_per_second=20)
        self._replaces = replaces
        """Whether each message is the whole text so far, and not the next piece of it."""
        self._text = ""

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def pause(self) -> None:
        """Leave the terminal to somebody else until the next message."""
        self._live.update(Text(""), refresh=True)
        self._live.stop()

    def hear(self, message: dict[str, Any]) -> None:
        """Take in a message that is not the answer."""
        if message.get("method") != "notifications/progress":
            return
        self._live.start()
        progress = message["params"]
        said, total = progress.get("message") or "", progress.get("total")
        if total:
            bar = ProgressBar(total, progress["progress"], width=_WIDTH)
            count = f"{progress['progress']:g} of {total:g}  {said}"
            self._live.update(Group(bar, Text(count)))
        else:
            self._text = said if self._replaces else self._text + said
            self._live.update(Tail(self._text))
