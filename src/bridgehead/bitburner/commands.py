"""Commands: what a person types after `bridgehead bitburner`."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from bridgehead.mcp import run_on_loop
from bridgehead.runtime import findings
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.findings import settings_table

from . import doctor
from .settings import BitburnerSettings
from .sync import command as sync

MOST_SECONDS = 3600.0
_ABOUT = """\
The scripts inside a running game of Bitburner, for agents. Without a command it serves an MCP client on
standard input and output.

  bridgehead bitburner doctor --wait 20
  bridgehead bitburner settings
  bridgehead bitburner sync scripts
  bridgehead bitburner simulate
"""


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run one command and return the exit status."""
    if arguments[:1] == ["simulate"]:
        from .simulator.command import simulate

        return simulate(arguments[1:], environment)
    options = parser().parse_args(arguments)
    if options.command == "sync":
        return sync.run(options, environment)
    if options.command == "settings":
        return _settings(environment)
    return _examine(environment, options.wait)


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead bitburner", description=_ABOUT)
    commands = found.add_subparsers(dest="command", required=True)
    looking = commands.add_parser("doctor", help="check everything between this machine and the game")
    looking.add_argument(
        "--wait",
        type=seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long to wait for a game (default: 5)",
    )
    commands.add_parser("settings", help="list every setting with its current value")
    sync.add_parser(commands)
    commands.add_parser("simulate", help="run a simulated game, to try things without the real one")
    return found


def seconds(text: str) -> float:
    """Read how long to wait, up to an hour."""
    found = float(text)
    if not 0 <= found <= MOST_SECONDS:
        raise ValueError(text)
    return found


def _examine(environment: Mapping[str, str], wait: float) -> int:
    console = Console()
    with console.status(f"Waiting up to {wait:g} s for a game to dial in …"):
        found = run_on_loop(doctor.examine(environment, wait))
    console.print(findings.table(found))
    return findings.exit_code(found)


def _settings(environment: Mapping[str, str]) -> int:
    Console(highlight=False).print(settings_table(BitburnerSettings(environment), environment))
    return 0
