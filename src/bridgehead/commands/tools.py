"""Tools: lists the tools of the bridges, for a person or as JSON, and their cost in tokens."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bridgehead.mcp import NEWEST_HANDSHAKE, Tool
from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.manifest import make_bridge

from . import tool_arguments

_ABOUT = """\
Lists the tools of one bridge, or of all.

  bridgehead tools
  bridgehead tools mercury --json
  bridgehead tools server.py                    a bridge of your own, in a file
  bridgehead tools --cost
"""
BYTES_PER_TOKEN = 4
"""A good estimate for JSON that needs no tokenizer."""


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead tools", description=_ABOUT)
    about = "its name, file or module (default: all bridges)"
    bridge = command.add_argument("bridge", metavar="BRIDGE", nargs="?", help=about)
    completed_by(bridge, lambda *_: bridge_files.suggestions())
    command.add_argument("--json", action="store_true", help="print the tools as a client receives them")
    command.add_argument(
        "--cost",
        action="store_true",
        help="show what each tool adds to every conversation, in bytes and tokens",
    )
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """List tools."""
    options = parser().parse_args(arguments)
    manifests = (
        [bridge_files.load(options.bridge)]
        if options.bridge
        else plugins.load_usable(lambda error: sys.stderr.write(f"bridgehead: {error}\n"))
    )
    tools = {
        manifest.name: {
            name: tool
            for name, tool in make_bridge(manifest, environment).tools.items()
            if tool.visible_to == "everyone"
        }
        for manifest in manifests
    }
    if options.cost:
        _show_costs(
            {name: measure_costs(of_bridge) for name, of_bridge in tools.items()}, as_json=options.json
        )
        return 0
    if options.json:
        # As in the newest revision with a handshake, which has every field that older clients are sent.
        listed = {
            name: [msgspec.to_builtins(tool.item(NEWEST_HANDSHAKE)) for tool in of_bridge.values()]
            for name, of_bridge in tools.items()
        }
        sys.stdout.write(json.dumps(listed, ensure_ascii=False, indent=2) + "\n")
        return 0
    console = Console(highlight=False)
    for name, of_bridge in tools.items():
        console.print(f"\n[bold]{name}[/]")
        table = Table.grid(padding=(0, 2, 0, 2))
        for offered, tool in of_bridge.items():
            usage = escape(tool_arguments.usage(tool.input_schema))
            table.add_row(f"[cyan]{offered}[/]", f"{escape(tool.description)}\n[dim]{usage}[/]")
        console.print(table)
    return 0


def measure_costs(tools: Mapping[str, Tool]) -> dict[str, int]:
    """Return the bytes of each tool in `tools/list`."""
    return {name: len(msgspec.json.encode(tool.item(NEWEST_HANDSHAKE))) for name, tool in tools.items()}


def _show_costs(costs: dict[str, dict[str, int]], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(costs, indent=2) + "\n")
        return
    console = Console(highlight=False)
    for bridge, tools in costs.items():
        table = Table.grid(padding=(0, 2, 0, 2))
        for column in ("bytes", "tokens"):
            table.add_column(column, justify="right")
        table.add_column("tool")
        table.add_row("[dim]bytes", "[dim]tokens", f"[bold]{bridge}[/]")
        rows = sorted(tools.items(), key=lambda tool: -tool[1])
        for name, size in [*rows, ("[bold]in all[/]", sum(tools.values()))]:
            table.add_row(f"{size:,}", f"~{-(-size // BYTES_PER_TOKEN):,}", name)
        console.print()
        console.print(table)
