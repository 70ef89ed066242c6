"""Tools: lists the tools of the bridges, for a person or as JSON, and their cost in tokens."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from bridgehead.mcp import NEWEST_HANDSHAKE, Tool
from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.manifest import make_bridge

from . import tool_arguments

_ABOUT = """\
Lists the tools of one bridge, or of all.

  bridgehead tools
  bridgehead tools mercury --json
  bridgehead tools --cost

A bridge of your own, in a file:
  bridgehead tools server.py
"""
BYTES_PER_TOKEN = 4.3
"""For o200k, the encoding of OpenAI's newer models; within 10 % for each of our tools."""


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
        help="show what each tool adds to every conversation: bytes and o200k tokens (estimated at 4.3 bytes "
        "each) of its name, description and input schema",
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
            {name: measure_costs(bridge_tools) for name, bridge_tools in tools.items()}, as_json=options.json
        )
        return 0
    if options.json:
        # Listed as for the newest revision with a handshake, which has all fields of the older ones.
        listed = {
            name: [msgspec.to_builtins(tool.item(NEWEST_HANDSHAKE)) for tool in bridge_tools.values()]
            for name, bridge_tools in tools.items()
        }
        sys.stdout.write(json.dumps(listed, ensure_ascii=False, indent=2) + "\n")
        return 0
    console = Console(highlight=False)
    for name, bridge_tools in tools.items():
        console.print(f"\n[bold]{name}[/]")
        table = Table.grid("", Column(overflow="fold"), padding=(0, 2, 0, 2))
        for offered, tool in bridge_tools.items():
            usage = escape(tool_arguments.usage(tool.input_schema))
            table.add_row(f"[cyan]{offered}[/]", f"{escape(tool.description)}\n[dim]{usage}[/]")
        console.print(table)
    return 0


def encode_listings(tools: Mapping[str, Tool]) -> dict[str, bytes]:
    """Return the part of each tool that a model is shown: its name, description and input schema."""
    items = {name: tool.item(NEWEST_HANDSHAKE) for name, tool in tools.items()}
    return {
        name: msgspec.json.encode(
            {"name": item.name, "description": item.description, "inputSchema": item.input_schema}
        )
        for name, item in items.items()
    }


def measure_costs(tools: Mapping[str, Tool]) -> dict[str, int]:
    """Return the bytes of each tool that a model is shown."""
    return {name: len(listing) for name, listing in encode_listings(tools).items()}


def estimate_tokens(size: int) -> int:
    """Return about how many o200k tokens a tool of this many bytes costs."""
    return round(size / BYTES_PER_TOKEN)


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
            table.add_row(f"{size:,}", f"~{estimate_tokens(size):,}", name)
        console.print()
        console.print(table)
    console.print(
        "\n[dim]Name, description and input schema of each tool. Tokens are o200k, estimated at "
        f"{BYTES_PER_TOKEN} bytes each.[/]"
    )
