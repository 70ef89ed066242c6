"""Demo: a tour of the bridges, offline, each as a real process with a simulated far side."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from rich.console import Console

from bridgehead.runtime.command_line import Parser

from . import bridges

_ABOUT = """\
Shows what an agent does with each bridge. Nothing leaves this machine, and nothing stays on it.

  bridgehead demo
  bridgehead demo aoc
"""


def main(arguments: list[str], _environment: Mapping[str, str]) -> int:
    """Show the bridges and return 0 where everything went as told."""
    parser = Parser(prog="bridgehead demo", description=_ABOUT)
    parser.add_argument("bridges", nargs="*", metavar="BRIDGE", help="all of them where none is named")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.bridges if name not in bridges.NAMES]
    if unknown:
        parser.error(f"there is no bridge {unknown[0]!r}, only {', '.join(bridges.NAMES)}")
    console = Console(highlight=False)
    well = [_tour(name, console) for name in options.bridges or bridges.NAMES]
    console.rule("[bold]That was it" if all(well) else "[bold red]Something did not go as told")
    return int(not all(well))


def _tour(name: str, console: Console) -> bool:
    well: bool = import_module(f"bridgehead.{name}.demo").tour(console)
    return well
