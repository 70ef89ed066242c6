"""Demo: a tour of the bridges, offline, each as a real process with a simulated far side."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser

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
    for name in options.bridges:
        if name not in plugins.names():
            parser.error(str(plugins.UnknownBridge(name)))
    console = Console(highlight=False)
    well = [_tour(name, console) for name in options.bridges or plugins.names()]
    console.rule("[bold]That was it" if all(well) else "[bold red]Something did not go as told")
    return int(not all(well))


def _tour(name: str, console: Console) -> bool:
    show = plugins.load(name).demo
    if show is None:
        console.print(f"{name} has no demo.")
        return True
    return show(console)
