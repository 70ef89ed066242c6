"""Call: calls one tool of a bridge from the command line and shows its progress.

The bridge runs in this process behind an in-memory MCP client. The answer goes to standard output and
everything else to standard error, so the answer can be piped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from bridgehead.mcp import Bridge, ProtocolError, Tool, in_memory, run_on_loop
from bridgehead.runtime import bridge_files
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.manifest import make_bridge

from . import questions, tool_arguments
from .live_progress import LiveProgress

_ABOUT = """\
Calls one tool and prints its answer.

  bridgehead call aoc fetch_instruction day=1
  bridgehead call mercury mercury_batch 'prompts=["Hello", "Hi"]'
  bridgehead call bitburner write_file filename=a.js content=@a.js

A tool of your own, in a file:
  bridgehead call server.py greet name=Ada

`bridgehead tools BRIDGE` shows which tools there are and what they take.
"""
_QUIET = {"MCP_LOG_LEVEL": "error", "LOG_FORMAT": "pretty"}
"""Log settings for a person at a terminal; the environment overrides them."""


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead call", description=_ABOUT)
    bridge = command.add_argument("bridge", metavar="BRIDGE", help="its name, file or module")
    completed_by(bridge, lambda *_: bridge_files.suggestions())
    tool = command.add_argument(
        "tool", metavar="TOOL", help="its name, as `bridgehead tools BRIDGE` lists it"
    )
    completed_by(tool, lambda before, environment: _tools(before[0], environment))
    about = "an argument; key=@FILE reads a file, key=@- standard input; @@ is an @"
    pairs = command.add_argument("pairs", nargs="*", default=(), metavar="key=value", help=about)
    completed_by(pairs, _keys)
    command.add_argument("--json", action="store_true", help="print the whole result as JSON")
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Call a tool; return 1 if it failed."""
    command = parser()
    options = command.parse_args(arguments)
    settings = {**_QUIET, **environment}
    bridge = make_bridge(bridge_files.load(options.bridge), settings)
    tool = bridge.tools.get(options.tool)
    if tool is None:
        command.refuse(f"{options.bridge} has no tool {options.tool!r}", options.tool, bridge.tools)
    try:
        values = tool_arguments.arguments(
            options.pairs,
            tool.input_schema,
            lambda path: sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8"),
        )
    except tool_arguments.InvalidToolArgument as invalid:
        command.error(invalid.reason, invalid.expected)
    LogSettings(settings).configure_logs()
    try:
        result = run_on_loop(_call(bridge, options.tool, values))
    except ProtocolError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    if options.json:
        sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
    else:
        # An error must not be mistaken for the answer by the next program in a pipe.
        stream = sys.stderr if result.get("isError") else sys.stdout
        for block in result["content"]:
            stream.write(block.get("text", f"[{block['type']}]").rstrip("\n") + "\n")
    return int(result.get("isError", False))


def _tools(bridge: str, environment: Mapping[str, str]) -> dict[str, Tool]:
    try:
        return make_bridge(bridge_files.load(bridge), environment).tools
    except BridgeError:  # completion has nowhere to show an error
        return {}


def _keys(before: list[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Complete the keys of a tool's arguments that are not on the command line yet."""
    bridge, name, *pairs = before
    typed = {word.partition("=")[0] for word in pairs}  # bash splits key=value into three words
    tool = _tools(bridge, environment).get(name)
    properties = tool.input_schema.get("properties", {}) if tool is not None else {}
    return (f"{key}=" for key in properties if key not in typed)


async def _call(bridge: Bridge[Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    console = Console(stderr=True, highlight=False)
    with LiveProgress(console, replaces=bool(arguments.get("diffusing"))) as live_progress:

        async def answer(_method: str, question: dict[str, Any]) -> dict[str, Any]:
            # Elicitation is the only capability declared below, so every request is a question to the user.
            live_progress.pause()
            return await questions.ask(console, question)

        capabilities: dict[str, Any] = {"elicitation": {}} if sys.stdin.isatty() else {}
        async with in_memory.connect(
            bridge, capabilities=capabilities, answering=answer, hearing=live_progress.show
        ) as client:
            # Without a progress token a bridge sends no progress.
            result: dict[str, Any] = await client.call(tool, arguments, _meta={"progressToken": "shown"})
            return result
