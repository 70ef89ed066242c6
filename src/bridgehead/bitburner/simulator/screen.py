"""Screen: shows a person what a simulated game is asked: on one screen, or line by line elsewhere."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from .answer import decode
from .game import Exchange

LINES = 16
LONGEST = 60


class Screen:
    """What is going on now, and the last requests."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._state = ""
        self._count = 0
        self._last: deque[Text] = deque(maxlen=LINES)
        self._live = Live(get_renderable=self._whole, console=console, refresh_per_second=8)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        else:
            self._print(Text(self._title))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def tell(self, state: str) -> None:
        """Say what is going on; the same is said once."""
        if state != self._state:
            self._state = state
            self._print(Text(state))

    def show(self, exchange: Exchange) -> None:
        """Show a request and what became of it."""
        self._count += 1
        line = Text.assemble(_asked(exchange.request), " → ", _became(exchange))
        if exchange.faults:
            line.append(f"  [{', '.join(sorted(exchange.faults))}]", style="yellow")
        self._last.append(line)
        self._print(line)

    def _print(self, line: Text) -> None:
        if not self._live.is_started:
            self._console.print(line, soft_wrap=True)

    def _whole(self) -> Group:
        head = Panel(Text(f"{self._state}\nRequests so far: {self._count}"), title=self._title, expand=False)
        return Group(head, *self._last)


def _asked(request: Any) -> str:
    if not isinstance(request, dict):
        return f"no request: {_short(repr(request))}"
    params = request.get("params")
    fields = params if isinstance(params, dict) else {}
    about = [_short(str(fields[name])) for name in ("filename", "server") if name in fields]
    return " ".join([_short(str(request.get("method"))), "@".join(about)]).rstrip()


def _became(exchange: Exchange) -> Text:
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
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
