"""Live progress: shows a call's progress on a terminal, as a bar if the total is known, else as text.

The display is transient: it is erased before the answer is printed.
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
    """Renders the end of a growing text, as much as fits the terminal."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width * console.height
        # Cut in steps of four screens: lines then wrap at the same places while the text grows.
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
        """Whether each message replaces the text so far; otherwise it is appended."""
        self._text = ""

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def pause(self) -> None:
        """Free the terminal, for a question to the user, until the next progress message."""
        self._live.update(Text(""), refresh=True)
        self._live.stop()

    def show(self, message: dict[str, Any]) -> None:
        """Show a progress notification; ignore other messages."""
        if message.get("method") != "notifications/progress":
            return
        self._live.start()
        progress = message["params"]
        text, total = progress.get("message") or "", progress.get("total")
        if total:
            bar = ProgressBar(total, progress["progress"], width=_WIDTH)
            count = f"{progress['progress']:g} of {total:g}  {text}"
            self._live.update(Group(bar, Text(count)))
        else:
            self._text = text if self._replaces else self._text + text
            self._live.update(Tail(self._text))
