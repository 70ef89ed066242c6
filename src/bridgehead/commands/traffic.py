"""Traffic: the messages between a client and a server, with their sizes, and answers with how long they took.

It is shown in a terminal, or on the page of `inspector`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.markup import escape

Sender = Literal["client", "server"]
KEPT = 1000
"""Messages that are kept for whoever looks later."""
MAX_WAITING = 10_000
_ARROWS = {"client": "[cyan]→[/]", "server": "[green]←[/]"}


class Entry(Struct, frozen=True):
    """One message, as it went by."""

    number: int
    at: float
    sender: Sender
    what: str
    """The method, or the one that is answered."""
    size: int
    milliseconds: float | None
    """How long an answer took."""
    is_error: bool
    text: str


class Traffic:
    """Reads messages as they pass, keeps the latest, and tells everyone who listens."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self.entries: deque[Entry] = deque(maxlen=KEPT)
        self.listeners: list[Callable[[Entry], None]] = []
        self._now = now
        self._count = 0
        self._asked: dict[tuple[Sender, str], tuple[str, float]] = {}

    def add(self, sender: Sender, line: bytes) -> dict[str, Any]:
        """Note a message and return it decoded; one that is not JSON is noted as it is."""
        try:
            decoded = msgspec.json.decode(line)
        except msgspec.DecodeError:
            decoded = None
        message: dict[str, Any] = decoded if isinstance(decoded, dict) else {}
        what, milliseconds = self._describe(sender, message)
        self._count += 1
        text = line.decode("utf-8", "replace").strip()
        is_error = "error" in message or bool((message.get("result") or {}).get("isError"))
        entry = Entry(self._count, self._now(), sender, what, len(line), milliseconds, is_error, text)
        self.entries.append(entry)
        for tell in tuple(self.listeners):
            tell(entry)
        return message

    def _describe(self, sender: Sender, message: dict[str, Any]) -> tuple[str, float | None]:
        """Return the method of a message and, of an answer, how long it took."""
        key = str(message.get("id"))
        if "method" in message:
            what = _name(message)
            if "id" in message and len(self._asked) < MAX_WAITING:
                self._asked[sender, key] = what, self._now()
            return what, None
        asker: Sender = "server" if sender == "client" else "client"
        what, began = self._asked.pop((asker, key), ("(not MCP)" if not message else "(answer)", None))
        return what, None if began is None else (self._now() - began) * 1000


def _name(message: dict[str, Any]) -> str:
    """Return the method with the tool, prompt or resource that it is about."""
    params = message.get("params")
    about = params.get("name") or params.get("uri") if isinstance(params, dict) else None
    return f"{message['method']} {about}" if isinstance(about, str) else str(message["method"])


def show(console: Console, entry: Entry) -> None:
    """Write a message as one line: who, what, how large, how long."""
    took = "" if entry.milliseconds is None else f"  [bold]{entry.milliseconds:.1f} ms[/]"
    what = f"[red]{escape(entry.what)}[/]" if entry.is_error else escape(entry.what)
    moment = time.strftime("%H:%M:%S", time.localtime(entry.at))
    console.print(f"[dim]{moment}[/] {_ARROWS[entry.sender]} {what}  [dim]{entry.size:,} bytes[/]{took}")
