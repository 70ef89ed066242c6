"""Call: one tool of a bridge, called from the command line, with its progress shown as it comes.

The bridge runs inside of this process and is talked to as any client would. The answer goes to standard
output, everything else to standard error, so that the answer can be piped on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from bridgehead.mcp import Bridge, ProtocolError, Tool, in_memory, run_on_loop
from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.manifest import make_bridge

from . import questions, tool_arguments
from .live_progress import LiveProgress

_ABOUT = """\
Calls one tool and prints its answer.

  bridgehead call aoc fetch_instruction day=1
  bridgehead call mercury mercury_chat_stream 'messages=[{"role": "user", "content": "Hello"}]'
  bridgehead call bitburner write_file filename=a.js content=@a.js

`bridgehead tools BRIDGE` shows which tools there are and what they take.
"""
_QUIET = {"MCP_LOG_LEVEL": "error", "LOG_FORMAT": "pretty"}
"""How a bridge logs where a person watches and has not said otherwise."""


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead call", description=_ABOUT)
    completed_by(found.add_argument("bridge"), lambda *_: plugins.names())
    completed_by(found.add_argument("tool"), lambda before, environment: _tools(before[0], environment))
    about = "an argument; key=@FILE reads a file, key=@- standard input; @@ is an @"
    pairs = found.add_argument("pairs", nargs="*", default=(), metavar="key=value", help=about)
    completed_by(pairs, _keys)
    found.add_argument("--json", action="store_true", help="print the whole result as JSON")
    return found


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Call a tool and return 0 where it did what it was asked for."""
    line = parser()
    options = line.parse_args(arguments)
    settings = {**_QUIET, **environment}
    bridge = make_bridge(plugins.load(options.bridge), settings)
    tool = bridge.tools.get(options.tool)
    if tool is None:
        line.refuse(f"{options.bridge} has no tool {options.tool!r}", options.tool, bridge.tools)
    try:
        given = tool_arguments.arguments(options.pairs, tool.input_schema, _text_of)
    except tool_arguments.InvalidToolArgument as misfit:
        line.error(misfit.reason, misfit.expected)
    LogSettings(settings).configure_logs()
    try:
        result = run_on_loop(_called(bridge, options.tool, given))
    except ProtocolError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    _print(result, as_json=options.json)
    return int(result.get("isError", False))


def _tools(bridge: str, environment: Mapping[str, str]) -> dict[str, Tool]:
    try:
        return make_bridge(plugins.load(bridge), environment).tools
    except BridgeError:
        return {}


def _keys(before: list[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Give the arguments of a tool that are not there yet."""
    bridge, tool, *given = before
    there = {word.partition("=")[0] for word in given}  # bash makes three words of key=value
    found = _tools(bridge, environment).get(tool)
    properties = found.input_schema.get("properties", {}) if found is not None else {}
    return (f"{key}=" for key in properties if key not in there)


def _text_of(path: str) -> str:
    return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")


async def _called(bridge: Bridge[Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    console = Console(stderr=True, highlight=False)
    with LiveProgress(console, replaces=bool(arguments.get("diffusing"))) as live_progress:
        capabilities: dict[str, Any] = {"elicitation": {}} if sys.stdin.isatty() else {}
        async with in_memory.connect(
            bridge,
            capabilities=capabilities,
            answering=_asking(console, live_progress),
            hearing=live_progress.hear,
        ) as client:
            meta = {"progressToken": "shown"}
            result: dict[str, Any] = await client.call(tool, arguments, _meta=meta)
            return result


def _asking(console: Console, live_progress: LiveProgress) -> in_memory.Answering:
    """Answer what a tool asks its user, which is all that a tool can ask here."""

    async def ask(_method: str, question: dict[str, Any]) -> dict[str, Any]:
        live_progress.pause()
        return await questions.ask(console, question)

    return ask


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
        return
    stream = sys.stderr if result.get("isError") else sys.stdout
    for block in result["content"]:
        stream.write(block.get("text", f"[{block['type']}]").rstrip("\n") + "\n")
