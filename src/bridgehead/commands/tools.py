"""Tools: what the bridges offer, listed for a person or as JSON, and what the lists cost a conversation."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bridgehead.mcp import NEWEST_HANDSHAKE, Tool
from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.manifest import make_bridge

from . import tool_arguments

_ABOUT = """\
Lists the tools of one bridge, or of all.

  bridgehead tools
  bridgehead tools mercury --json
  bridgehead tools --cost
"""
BYTES_PER_TOKEN = 4
"""Near enough to what models count for JSON, and needs no tokenizer."""


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead tools", description=_ABOUT)
    completed_by(found.add_argument("bridge", nargs="?"), lambda *_: plugins.names())
    found.add_argument("--json", action="store_true", help="print the tools as a client receives them")
    found.add_argument(
        "--cost",
        action="store_true",
        help="show what each tool adds to every conversation, in bytes and tokens",
    )
    return found


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """List tools."""
    options = parser().parse_args(arguments)
    chosen = (
        [plugins.load(options.bridge)]
        if options.bridge
        else plugins.load_usable(lambda error: sys.stderr.write(f"bridgehead: {error}\n"))
    )
    found = {
        one.name: [
            tool for tool in make_bridge(one, environment).tools.values() if tool.visible_to == "everyone"
        ]
        for one in chosen
    }
    if options.cost:
        _show_costs({name: measure_costs(tools) for name, tools in found.items()}, as_json=options.json)
    elif options.json:
        listed = {
            name: [msgspec.to_builtins(tool.item(NEWEST_HANDSHAKE)) for tool in tools]
            for name, tools in found.items()
        }
        sys.stdout.write(json.dumps(listed, ensure_ascii=False, indent=2) + "\n")
    else:
        _show(found)
    return 0


def measure_costs(tools: list[Tool]) -> dict[str, int]:
    """Return the bytes that each tool takes in the list that a client reads."""
    return {tool.name: len(msgspec.json.encode(tool.item(NEWEST_HANDSHAKE))) for tool in tools}


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


def _show(found: dict[str, list[Tool]]) -> None:
    console = Console(highlight=False)
    for name, tools in found.items():
        console.print(f"\n[bold]{name}[/]")
        table = Table.grid(padding=(0, 2, 0, 2))
        for tool in tools:
            takes = escape(tool_arguments.usage(tool.input_schema))
            table.add_row(f"[cyan]{tool.name}[/]", f"{escape(tool.description)}\n[dim]{takes}[/]")
        console.print(table)
