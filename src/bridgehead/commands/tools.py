"""Tools: what the bridges offer, listed for a person or as JSON."""

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
"""


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead tools", description=_ABOUT)
    completed_by(found.add_argument("bridge", nargs="?"), lambda *_: plugins.names())
    found.add_argument("--json", action="store_true", help="print them as a client gets them")
    return found


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """List tools."""
    options = parser().parse_args(arguments)
    chosen = (
        [plugins.load(options.bridge)]
        if options.bridge
        else plugins.load_usable(lambda error: sys.stderr.write(f"bridgehead: {error}\n"))
    )
    found = {one.name: list(make_bridge(one, environment).tools.values()) for one in chosen}
    if options.json:
        listed = {
            name: [msgspec.to_builtins(tool.item(NEWEST_HANDSHAKE)) for tool in tools]
            for name, tools in found.items()
        }
        sys.stdout.write(json.dumps(listed, ensure_ascii=False, indent=2) + "\n")
    else:
        _show(found)
    return 0


def _show(found: dict[str, list[Tool]]) -> None:
    console = Console(highlight=False)
    for name, tools in found.items():
        console.print(f"\n[bold]{name}[/]")
        table = Table.grid(padding=(0, 2, 0, 2))
        for tool in tools:
            takes = escape(tool_arguments.usage(tool.input_schema))
            table.add_row(f"[cyan]{tool.name}[/]", f"{escape(tool.description)}\n[dim]{takes}[/]")
        console.print(table)
