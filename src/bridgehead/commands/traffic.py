"""Traffic: shows the messages between a client and a server as lines with size and duration."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.markup import escape

Sender = Literal["client", "server"]
MAX_PENDING = 10_000
"""Unanswered requests that are tracked; answers to others are shown without a duration."""
_ARROWS = {"client": "[cyan]→[/]", "server": "[green]←[/]"}


class TrafficEntry(Struct, frozen=True):
    """One message."""

    at: float
    """Seconds since the epoch."""
    sender: Sender
    label: str
    """The method with the tool or resource it names; an answer has the label of its request."""
    size: int
    """In bytes."""
    milliseconds: float | None
    """Time from the request to this answer; None for requests."""
    is_error: bool


class Traffic:
    """Decodes messages as they pass, matches answers to requests, and shows an entry for each."""

    def __init__(self, show: Callable[[TrafficEntry], None], now: Callable[[], float] = time.time) -> None:
        self._show = show
        self._now = now
        self._pending: dict[tuple[Sender, str], tuple[str, float]] = {}
        """Method and start of each unanswered request. Keyed by sender too: both sides number from 1."""

    def add(self, sender: Sender, line: bytes) -> dict[str, Any]:
        """Show a message and return it decoded; empty if it is not a JSON object."""
        try:
            decoded = msgspec.json.decode(line)
        except msgspec.DecodeError:
            decoded = None
        message: dict[str, Any] = decoded if isinstance(decoded, dict) else {}
        key = str(message.get("id"))
        milliseconds = None
        if "method" in message:
            params = message.get("params")
            about = params.get("name") or params.get("uri") if isinstance(params, dict) else None
            label = f"{message['method']} {about}" if isinstance(about, str) else str(message["method"])
            if "id" in message and len(self._pending) < MAX_PENDING:
                self._pending[sender, key] = label, self._now()
        else:
            asker: Sender = "server" if sender == "client" else "client"
            label, began = self._pending.pop((asker, key), ("(answer)" if message else "(not MCP)", None))
            milliseconds = None if began is None else (self._now() - began) * 1000
        # A failed tool is a result with `isError`, not a JSON-RPC error; both are shown as errors.
        is_error = "error" in message or bool((message.get("result") or {}).get("isError"))
        self._show(TrafficEntry(self._now(), sender, label, len(line), milliseconds, is_error))
        return message


def show(console: Console, entry: TrafficEntry) -> None:
    """Print a message as one line: time, direction, method, size, duration."""
    took = "" if entry.milliseconds is None else f"  [bold]{entry.milliseconds:.1f} ms[/]"
    label = f"[red]{escape(entry.label)}[/]" if entry.is_error else escape(entry.label)
    moment = time.strftime("%H:%M:%S", time.localtime(entry.at))
    console.print(f"[dim]{moment}[/] {_ARROWS[entry.sender]} {label}  [dim]{entry.size:,} bytes[/]{took}")
