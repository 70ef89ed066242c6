"""Demo: shows each bridge as a real process against a simulated far side, offline."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Mapping

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
    command = Parser(prog="bridgehead demo", description=_ABOUT)
    names = command.add_argument("bridges", nargs="*", metavar="BRIDGE", help="the bridges (default: all)")
    completed_by(names, lambda *_: plugins.names())
    return command


def main(arguments: list[str], _environment: Mapping[str, str]) -> int:
    """Run the demos; return 1 if one did not go as expected."""
    options = parser().parse_args(arguments)
    manifests: Iterable[Manifest] = [plugins.load(name) for name in options.bridges] or plugins.load_usable(
        lambda error: sys.stderr.write(f"bridgehead: {error}\n")
    )
    manifests = sorted(manifests, key=lambda manifest: manifest.tour)
    console = Console(highlight=False)
    began = time.monotonic()
    is_success = True
    for manifest in manifests:
        try:
            show_demo = manifest.load_demo()
            if show_demo is None:
                console.print(f"{manifest.title} has no demo.")
            else:
                is_success = show_demo(console) and is_success
        except Exception as failure:  # noqa: BLE001 - a newcomer gets a sentence and the next demo, no traceback
            is_success = False
            reason = str(failure) or type(failure).__name__
            console.print(f"\n[bold red]The demo of {manifest.name} stopped:[/] {escape(reason)}")
            console.print(f"`bridgehead doctor {manifest.name}` looks for the cause.")
    took = f"{time.monotonic() - began:.0f} s"
    console.rule(f"[bold]Done in {took}" if is_success else "[bold red]Something did not go as expected")
    if shutil.which("bridgehead"):  # otherwise `make demo` says how to find it
        console.print("Next, to give them to your agent: bridgehead install")
    return int(not is_success)
