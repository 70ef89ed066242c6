"""DemoScript: shows a person how an agent uses a bridge, with the real command as a real process.

What is asked and what comes back is shown as it happens. Used by the demo of each bridge.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

REVISION = "2025-11-25"
LONGEST = 1200
"""Characters of an answer that are shown; the rest is counted."""
MAX_LINES = 40
FRAMES = 30
"""How often a second what is live is drawn."""
COMMAND = (sys.executable, "-m", "bridgehead")
HOME = str(Path(__file__).parents[2])
"""Where this package was found: the bridge must be of the same one, also out of an unpacked archive."""
PATIENCE = 30.0
"""Seconds that the bridge may take for an answer, and for its end."""

Progress = Callable[[dict[str, Any]], None]


class DemoScript:
    """One bridge in a process of its own, and a client that shows its requests and the answers."""

    def __init__(
        self,
        console: Console,
        bridge: str,
        environment: Mapping[str, str],
        *,
        command: Sequence[str] = COMMAND,
        patience: float = PATIENCE,
    ) -> None:
        self._console = console
        self._patience = patience
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*command, bridge],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": HOME, **environment, "LOG_LEVEL": "error"},
            cwd=HOME,  # not where the person is, whose .env is not meant for a tour
        )
        self._last_id = 0
        self.failures = 0

    def __enter__(self) -> Self:
        hello = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "demo", "version": "1"},
        }
        try:
            server = self.request("initialize", hello)["serverInfo"]
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except BaseException:
            self._end()
            raise
        self._console.rule(f"[bold]{server['name']} {server['version']}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.expect(self._end() == 0)

    def say(self, text: str) -> None:
        """Tell what comes next."""
        self._console.print(f"\n[bold]{escape(text)}[/]")

    def call(
        self, why: str, tool: str, arguments: dict[str, Any], on_progress: Progress | None = None
    ) -> dict[str, Any]:
        """Call a tool, show the call and its answer, and return the result."""
        self._show_call(why, tool, arguments)
        result = self._call(tool, arguments, on_progress)
        text = "\n".join(block.get("text", block["type"]) for block in result["content"])
        is_error = result.get("isError", False)
        self._show("←", "red" if is_error else "green", Panel(Text(_readable(text)), expand=False))
        return result

    def call_live(
        self, why: str, tool: str, arguments: dict[str, Any], *, is_replaced: bool = False
    ) -> dict[str, Any]:
        """Call a tool whose answer is shown once, as it grows; or as each state of it replaces the last."""
        self._show_call(why, tool, arguments)
        text = Text()
        panel = _row("←", "green", Panel(text, expand=False))
        with Live(panel, console=self._console, refresh_per_second=FRAMES) as live:

            def change(notice: dict[str, Any]) -> None:
                if is_replaced:
                    text.truncate(0)
                text.append(notice.get("message", ""))
                live.refresh()

            result = self._call(tool, arguments, change)
        if not self._console.is_terminal:
            self._console.line()  # rich ends the last line of a live panel on terminals only
        return result

    def _show_call(self, why: str, tool: str, arguments: dict[str, Any]) -> None:
        self.say(why)
        asked = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
        )
        self._show("→", "cyan", Text(_short(f"{tool}({asked})")))

    def _call(self, tool: str, arguments: dict[str, Any], on_progress: Progress | None) -> dict[str, Any]:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if on_progress is not None:
            params["_meta"] = {"progressToken": "shown"}
        return self.request("tools/call", params, on_progress)

    def request(
        self, method: str, params: dict[str, Any], on_progress: Progress | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result; an error of the protocol is returned as a tool's."""
        self._last_id += 1
        too_late = Timer(self._patience, self._process.kill)  # reading a pipe has no limit of its own
        too_late.start()
        try:
            self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
            answer = self._answer(on_progress)
        finally:
            too_late.cancel()
        if "error" in answer:
            return {"content": [{"type": "text", "text": answer["error"]["message"]}], "isError": True}
        result: dict[str, Any] = answer["result"]
        return result

    def expect(self, holds: bool) -> None:  # noqa: FBT001 - a statement, not an option
        """Count a failure where something that the tour says does not hold."""
        self.failures += not holds

    def _end(self) -> int:
        try:
            self._process.communicate(timeout=self._patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        return self._process.returncode

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        with suppress(OSError):  # a bridge that has ended is noticed where its answer is missing
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self, on_progress: Progress | None) -> dict[str, Any]:
        while True:
            message = self._receive()
            if "method" in message:
                if message["method"] == "notifications/progress" and on_progress is not None:
                    on_progress(message["params"])
            elif message.get("id") == self._last_id:
                return message

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(
                f"The bridge ended during the demo, or did not answer within {self._patience:g} s; "
                "its standard error says why."
            )
        message: dict[str, Any] = json.loads(line)
        return message

    def _show(self, arrow: str, colour: str, what: RenderableType) -> None:
        self._console.print(_row(arrow, colour, what))


def _row(arrow: str, colour: str, what: RenderableType) -> Table:
    row = Table.grid(padding=(0, 1))
    row.add_row(f"  [bold {colour}]{arrow}[/]", what)
    return row


def _readable(text: str) -> str:
    """Lay JSON out in lines, and shorten anything by whole lines."""
    with suppress(ValueError):
        text = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    lines = text.splitlines()
    left = len(lines) - MAX_LINES
    return _short(text) if left <= 0 else "\n".join([*lines[:MAX_LINES], f"… and {left:,} more lines"])


def _short(text: str) -> str:
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}\n… and {left:,} more characters"
