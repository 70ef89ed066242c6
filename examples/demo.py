"""A conversation with a bridge: starts `greeter.py` as a real process and talks to it as a client would."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

console = Console(highlight=False)
GREETER = Path(__file__).with_name("greeter.py")
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "demo", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Conversation:
    """One server process, and every line that goes to it or comes from it, shown."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(GREETER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._last_id = 0

    def ask(self, why: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, show it and everything up to its answer, and return the answer."""
        self._last_id += 1
        console.print(f"\n[bold]{escape(why)}[/]")
        return self.say({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})

    def say(self, message: dict[str, Any] | str) -> dict[str, Any]:
        """Send one line as it is."""
        line = message if isinstance(message, str) else json.dumps(message)
        _show("→", "cyan", line)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        while True:
            answer = self._process.stdout.readline()
            _show("←", "green", answer)
            decoded: dict[str, Any] = json.loads(answer)
            if "id" in decoded:
                return decoded

    def end(self) -> int:
        """Close the server's input, as a client does, and return its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(timeout=10)


def _show(arrow: str, colour: str, line: str) -> None:
    pretty = json.dumps(json.loads(line), ensure_ascii=False) if line.startswith("{") else line
    row = Table.grid(padding=(0, 1))
    row.add_row(
        f"  [bold {colour}]{arrow}[/]", Syntax(pretty, "json", word_wrap=True, background_color="default")
    )
    console.print(row)


def main() -> int:
    """Show the handshake, a call, a mistake, the same call without a handshake, and the end."""
    console.rule("[bold]A bridge in under 40 lines, and a client that talks to it")
    talk = Conversation()
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "demo", "version": "1"},
    }
    talk.ask("A client says hello and the two agree on a protocol revision.", "initialize", hello)
    talk.ask("What can you do?", "tools/list", {})
    call = {"name": "greet", "arguments": {"name": "Ada", "language": "fr"}, "_meta": {"progressToken": "p1"}}
    answer = talk.ask("Call the tool, and ask to hear of its progress.", "tools/call", call)
    wrong = {"name": "greet", "arguments": {"name": "Ada", "langauge": "fr"}}
    refusal = talk.ask("A slip of the pen: the model is told what is wrong.", "tools/call", wrong)
    console.print("\n[bold]Not even JSON: still an answer, and the connection lives on.[/]")
    talk.say("Hello, is anybody there?")
    modern = {"name": "greet", "arguments": {"name": "Grace"}, "_meta": MODERN}
    talk.ask("The same process, the newest revision: no handshake at all.", "tools/call", modern)
    talk.ask("A resource, read.", "resources/read", {"uri": "greeter://languages"})
    code = talk.end()
    console.rule(f"[bold]The client leaves; the server ends with exit code {code}")
    well = (
        answer["result"]["structuredContent"]["greeting"] == "Bonjour, Ada!" and refusal["result"]["isError"]
    )
    return 0 if well and code == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
