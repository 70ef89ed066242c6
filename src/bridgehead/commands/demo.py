"""Demo: a tour of the bridges, offline, each as a real process with a simulated far side."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.manifest import Manifest

_ABOUT = """\
Shows what an agent does with each bridge. Nothing leaves this machine, and nothing stays on it.

  bridgehead demo
  bridgehead demo aoc
"""


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead demo", description=_ABOUT)
    names = found.add_argument("bridges", nargs="*", metavar="BRIDGE", help="the bridges (default: all)")
    completed_by(names, lambda *_: plugins.names())
    return found


def main(arguments: list[str], _environment: Mapping[str, str]) -> int:
    """Show the bridges and return 0 if everything went as expected."""
    options = parser().parse_args(arguments)
    chosen = [plugins.load(name) for name in options.bridges] or plugins.load_usable(
        lambda error: sys.stderr.write(f"bridgehead: {error}\n")
    )
    console = Console(highlight=False)
    began = time.monotonic()
    well = [_show(manifest, console) for manifest in chosen]
    took = f"{time.monotonic() - began:.0f} s"
    console.rule(f"[bold]Done in {took}" if all(well) else "[bold red]Something did not go as expected")
    return int(not all(well))


def _show(manifest: Manifest, console: Console) -> bool:
    try:
        show_demo = manifest.load_demo()
        if show_demo is None:
            console.print(f"{manifest.title} has no demo.")
            return True
        return show_demo(console)
    except Exception as failure:  # noqa: BLE001 - whatever it is, a newcomer reads a sentence and the next demo
        reason = str(failure) or type(failure).__name__
        console.print(f"\n[bold red]The demo of {manifest.name} stopped:[/] {escape(reason)}")
        console.print(f"`bridgehead doctor {manifest.name}` looks for the cause.")
        return False
