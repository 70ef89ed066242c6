"""Commands: `bridgehead bitburner doctor`, `settings`, `sync`, `install-checker` and `simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
  bridgehead bitburner install-checker
  bridgehead bitburner simulate
"""


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run one command and return the exit status."""
    # The simulator parses its own options, so that the parser here need not import it.
    if arguments[:1] == ["simulate"]:
        from .simulator.command import simulate

        return simulate(arguments[1:], environment)
    options = parser().parse_args(arguments)
    if options.command == "sync":
        return sync.run(options, environment)
    if options.command == "settings":
        Console(highlight=False).print(settings_table(BitburnerSettings(environment), environment))
        return 0
    if options.command == "install-checker":
        return install_checker(options.archive, environment)
    console = Console()
    with console.status(f"Waiting up to {options.wait:g} s for a game to dial in …"):
        report = run_on_loop(doctor.examine(environment, options.wait))
    console.print(findings.table(report))
    return findings.exit_code(report)


def parser() -> Parser:
    """Return the parser of the command line."""
    root = Parser(prog="bridgehead bitburner", description=_ABOUT)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checking = commands.add_parser("doctor", help="check everything between this machine and the game")
    checking.add_argument(
        "--wait",
        type=number(float, 0, sync.MAX_WAIT_SECONDS),
        default=5.0,
        metavar="SECONDS",
        help="how long to wait for a game (default: 5)",
    )
    commands.add_parser("settings", help="list every setting with its current value")
    sync.add_parser(commands)
    checker = commands.add_parser("install-checker", help="install TypeScript, for a closer check of scripts")
    checker.add_argument(
        "--from",
        dest="archive",
        type=Path,
        metavar="FILE",
        help="the package's .tgz file, instead of fetching it with npm",
    )
    commands.add_parser("simulate", help="run a simulated game, to try things without the real one")
    return root


def install_checker(archive: Path | None, environment: Mapping[str, str]) -> int:
    """Install the TypeScript checker and return the exit status."""
    from .typescript import component

    console = Console(highlight=False, soft_wrap=True)
    try:
        program = component.install(BitburnerSettings(environment), archive)
    except component.ComponentError as problem:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"{problem}", style="red")
        return 1
    console.print(f"TypeScript {component.VERSION} is installed in {program.parent.parent}.")
    console.print("Bridges that start from now on check scripts with it.")
    return 0
