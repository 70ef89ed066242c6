"""Commands: `bridgehead bitburner doctor`, `settings`, `sync` and `simulate`."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from bridgehead.mcp import run_on_loop
from bridgehead.runtime import findings
from bridgehead.runtime.command_line import Parser, number
from bridgehead.runtime.findings import settings_table

from . import doctor
from .settings import BitburnerSettings
from .sync import command as sync

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
    # The simulator parses its own options, so that the parser here need not import it.
    if arguments[:1] == ["simulate"]:
        from .simulator.command import simulate  # lazy: the simulated game, 45 ms

        return simulate(arguments[1:], environment)
    options = parser().parse_args(arguments)
    if options.command == "sync":
        return sync.run(options, environment)
    if options.command == "settings":
        Console(highlight=False).print(settings_table(BitburnerSettings(environment), environment))
        return 0
    console = Console()
    with console.status(f"Waiting up to {options.wait:g} s for a game to dial in …"):
        report = run_on_loop(doctor.examine(environment, options.wait))
    findings.show_findings(console, report)
    return findings.exit_code(report)


def parser() -> Parser:
    """Return the parser of the command line."""
    root = Parser(prog="bridgehead bitburner", description=_ABOUT)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checking = commands.add_parser(
        "doctor", help="check everything between this machine and the game", example="doctor --wait 20"
    )
    checking.add_argument(
        "--wait",
        type=number(float, 0, sync.MAX_WAIT_SECONDS),
        default=5.0,
        metavar="SECONDS",
        help="how long to wait for a game (default: 5)",
    )
    commands.add_parser("settings", help="list every setting with its current value")
    sync.add_parser(commands)
    commands.add_parser("simulate", help="run a simulated game, to try things without the real one")
    return root
