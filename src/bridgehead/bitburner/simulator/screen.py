"""Screen: shows the requests to a simulated game: live on a terminal, line by line elsewhere."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from .answer import decode
from .game import Exchange

LINES = 16
MAX_TEXT = 60


class Screen:
    """The current state and the last requests."""

    def __init__(self, console: Console, title: str, advice: str = "") -> None:
        self._console = console
        self._title = title
        self._advice = advice
        """Printed above the live part, and never redrawn."""
        self._state = ""
        self._count = 0
        self._last: deque[Text] = deque(maxlen=LINES)

        def render() -> Group:
            state = Text(f"{self._state}\nRequests so far: {self._count}")
            return Group(Panel(state, title=self._title, expand=False), *self._last)

        self._live = Live(get_renderable=render, console=console, refresh_per_second=8)

    def __enter__(self) -> Self:
        if not self._console.is_terminal:
            self._print(Text(self._title))
        if self._advice:
            self._print(Text(self._advice))
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show_state(self, state: str) -> None:
        """Show the current state, unless it is shown already."""
        if state != self._state:
            self._state = state
            self._print(Text(state))

    def show(self, exchange: Exchange) -> None:
        """Show a request and its reply."""
        self._count += 1
        request = exchange.request
        if isinstance(request, dict):
            params = request.get("params")
            fields = params if isinstance(params, dict) else {}
            about = [_short(str(fields[name])) for name in ("filename", "server") if name in fields]
            request_text = " ".join([_short(str(request.get("method"))), "@".join(about)]).rstrip()
        else:
            request_text = f"no request: {_short(repr(request))}"
        line = Text.assemble(request_text, " → ", _describe_reply(exchange))
        if exchange.faults:
            line.append(f"  [{', '.join(sorted(exchange.faults))}]", style="yellow")
        self._last.append(line)
        self._print(line)

    def _print(self, line: Text) -> None:
        if not self._live.is_started:
            self._console.print(line, soft_wrap=True)


def _describe_reply(exchange: Exchange) -> Text:
    if "drop" in exchange.faults:
        return Text("the connection is cut", style="red")
    if exchange.reply is None:
        return Text("no reply", style="red")
    size = Text(f"{len(exchange.reply):,} bytes", style="green")
    if len(exchange.reply) > 1000:  # noqa: PLR2004 - no error is as long, and decoding would take time
        return size
    reply = decode(exchange.reply)
    return Text(reply["error"], style="magenta") if isinstance(reply, dict) and "error" in reply else size


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
