"""Commands: what a person types after `bridgehead bitburner`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from rich.console import Console

from bridgehead.runtime import findings, showing
from bridgehead.runtime.command_line import Parser

from . import doctor
from .settings import BitburnerSettings

_ABOUT = """\
The bitburner bridge. Its name alone serves it to an MCP client on standard input and output.

  doctor     says what is right and what is wrong: port, listener, game, generation, permission
  settings   prints every setting with its value
  simulate   plays a game that dials in, for trying things out without one
"""


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run one command and return the exit status."""
    match arguments:
        case ["simulate", *rest]:
            from .simulator.command import simulate

            return simulate(rest, environment)
        case ["doctor", *rest]:
            return _doctor(rest, environment)
        case ["settings"]:
            return _settings(environment)
        case _:
            return _help(arguments)


def _help(arguments: list[str]) -> int:
    parser = Parser(prog="bridgehead bitburner", description=_ABOUT)
    parser.add_argument("command", choices=("doctor", "settings", "simulate"))
    parser.parse_args(arguments)
    return 0  # settings takes nothing behind it, which the parser has said by now


def _doctor(arguments: list[str], environment: Mapping[str, str]) -> int:
    parser = Parser(
        prog="bridgehead bitburner doctor", description="Looks at everything between here and the game."
    )
    parser.add_argument(
        "--wait", type=float, default=5.0, metavar="SECONDS", help="for a game to dial in (5)"
    )
    wait = parser.parse_args(arguments).wait
    console = Console()
    with console.status(f"Waiting up to {wait:g} s for a game to dial in …"):
        found = asyncio.run(doctor.examine(environment, wait))
    console.print(findings.table(found))
    return findings.exit_code(found)


def _settings(environment: Mapping[str, str]) -> int:
    Console(highlight=False).print(showing.table(BitburnerSettings(environment), environment))
    return 0
