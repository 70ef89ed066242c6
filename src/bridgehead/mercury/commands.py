"""Commands: the subcommands of `bridgehead mercury`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.findings import exit_code, settings_table, show_findings

from .doctor import examine
from .settings import MercurySettings
from .usage_command import add_options, show_usage

_ABOUT = """\
The Mercury diffusion LLM for agents. Without a command it serves an MCP client on standard input and output,
or over HTTP with MCP_TRANSPORT=http.

  bridgehead mercury doctor
  bridgehead mercury settings
  bridgehead mercury usage --days 7 --by day,model
  bridgehead mercury simulate
"""


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run a command and return the exit status."""
    # The simulator parses its own options, so that the parser here need not import it.
    if arguments[:1] == ["simulate"]:
        from .simulator.command import simulate  # lazy: the simulated API, 12 ms

        return simulate(arguments[1:], environment)
    options = parser().parse_args(arguments)
    if options.command == "usage":
        return show_usage(options, environment)
    from rich.console import Console

    if options.command == "settings":
        Console(highlight=False).print(settings_table(MercurySettings(environment), environment))
        return 0
    findings = asyncio.run(examine(environment, offline=options.offline))
    show_findings(Console(highlight=False), findings)
    return exit_code(findings)


def parser() -> Parser:
    """Return the parser of the command line."""
    result = Parser(prog="bridgehead mercury", description=_ABOUT)
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor = commands.add_parser(
        "doctor", help="check the settings, the key, the API and the model with real requests"
    )
    doctor.add_argument("--offline", action="store_true", help="check only what needs no network")
    commands.add_parser("settings", help="list every setting with its current value")
    usage = commands.add_parser(
        "usage",
        help="show what was used and what it cost, by day, model or client",
        example="usage --days 7 --by day,model",
    )
    add_options(usage)
    commands.add_parser("simulate", help="serve a simulated Mercury API on loopback")
    return result
