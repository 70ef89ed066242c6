"""Demo script: shows how an agent uses a bridge, with the real command in a real process.

Requests and answers are shown as they happen. Used by the demo of each bridge.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import ndiff
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .lines import split_lines

REVISION = "2025-11-25"
MAX_CHARACTERS = 300
"""Characters of an answer that are shown."""
MAX_LINES = 4
FRAMES_PER_SECOND = 30
COMMAND = (sys.executable, "-m", "bridgehead")
HOME = str(Path(__file__).parents[2])
"""Folder of this package: the child must run the same one, also from an unpacked archive."""
TIMEOUT_SECONDS = 30.0
"""Limit for each answer of the bridge, and for its exit."""

Progress = Callable[[dict[str, Any]], None]


class DemoScript:
    """A bridge in a child process, and a client that shows requests and answers."""

    def __init__(
        self,
        console: Console,
        bridge: str,
        environment: Mapping[str, str],
        *,
        command: Sequence[str] = COMMAND,
        seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._console = console
        self._seconds = seconds
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*command, bridge],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": HOME, **environment, "LOG_LEVEL": "error"},
            # Not the user's folder: its .env is not meant for a demo.
            cwd=HOME,
        )
        self._last_id = 0
        self.failures = 0

    def __enter__(self) -> Self:
        params = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "demo", "version": "1"},
        }
        try:
            server = self.request("initialize", params)["serverInfo"]
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
        """Print a sentence that introduces the next step."""
        self._console.print(f"\n[bold]{escape(text)}[/]")

    def call(
        self, why: str, tool: str, arguments: dict[str, Any], on_progress: Progress | None = None
    ) -> dict[str, Any]:
        """Call a tool, show the call and its answer, and return the result."""
        self._show_call(why, tool, arguments)
        result = self._call(tool, arguments, on_progress)
        # The first block is the answer; the others repeat its notes.
        text = result["content"][0].get("text", result["content"][0]["type"])
        with suppress(ValueError):  # not JSON
            text = json.dumps(json.loads(text), ensure_ascii=False)
        lines = split_lines(_short(text).strip())
        text = "\n".join([*lines[:MAX_LINES], *(["…"] if len(lines) > MAX_LINES else [])])
        self._show("←", "red" if result.get("isError", False) else "green", Text(text))
        return result

    def show_change(self, before: str, after: str) -> None:
        """Show what an edit changed, line by line, as a diff does."""
        colours = {"+": "green", "-": "red"}
        text = Text()
        for line in ndiff(split_lines(before), split_lines(after)):
            if line[0] != "?":
                text.append(f"{line}\n", colours.get(line[0], "dim"))
        text.rstrip()
        self._console.print(_row(" ", "dim", text))

    def call_live(
        self, why: str, tool: str, arguments: dict[str, Any], *, is_replaced: bool = False
    ) -> dict[str, Any]:
        """Call a tool and show its progress messages: appended, or each in place of the last."""
        self._show_call(why, tool, arguments)
        text = Text()
        panel = _row("←", "green", text)
        with Live(panel, console=self._console, refresh_per_second=FRAMES_PER_SECOND) as live:

            def change(notice: dict[str, Any]) -> None:
                if is_replaced:
                    text.truncate(0)
                text.append(notice.get("message", ""))
                live.refresh()

            result = self._call(tool, arguments, change)
        if not self._console.is_terminal:
            # Rich ends the last line of a live panel on terminals only.
            self._console.line()
        return result

    def _show_call(self, why: str, tool: str, arguments: dict[str, Any]) -> None:
        self.say(why)
        shown_arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
        )
        self._show("→", "cyan", Text(_short(f"{tool}({shown_arguments})")))

    def _call(self, tool: str, arguments: dict[str, Any], on_progress: Progress | None) -> dict[str, Any]:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if on_progress is not None:
            # A server sends progress only for a request that carries a token.
            params["_meta"] = {"progressToken": "shown"}
        return self.request("tools/call", params, on_progress)

    def request(
        self, method: str, params: dict[str, Any], on_progress: Progress | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result; a protocol error is returned like a tool's error."""
        self._last_id += 1
        timer = Timer(self._seconds, self._process.kill)  # readline has no timeout of its own
        timer.start()
        try:
            self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
            answer = self._read_answer(on_progress)
        finally:
            timer.cancel()
        if "error" in answer:
            return {"content": [{"type": "text", "text": answer["error"]["message"]}], "isError": True}
        result: dict[str, Any] = answer["result"]
        return result

    def expect(self, holds: bool) -> None:  # noqa: FBT001 - a statement, not an option
        """Count a failure unless the condition holds."""
        self.failures += not holds

    def _end(self) -> int:
        try:
            self._process.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        return self._process.returncode

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        with suppress(OSError):  # the bridge has ended; `_read_answer` reports it
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _read_answer(self, on_progress: Progress | None) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        while line := self._process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if "method" in message:
                if message["method"] == "notifications/progress" and on_progress is not None:
                    on_progress(message["params"])
            elif message.get("id") == self._last_id:
                return message
        raise EOFError(
            f"The bridge ended during the demo, or did not answer within {self._seconds:g} s; "
            "its standard error says why."
        )

    def _show(self, arrow: str, colour: str, what: RenderableType) -> None:
        self._console.print(_row(arrow, colour, what))


def _row(arrow: str, colour: str, what: RenderableType) -> Table:
    row = Table.grid(padding=(0, 1))
    row.add_row(f"  [bold {colour}]{arrow}[/]", what)
    return row


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]} …"
