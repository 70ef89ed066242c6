"""The `bridgehead` command.

Owns the reading of the command line: nothing else in the distribution looks at `sys.argv` or at the
environment. What it reads it hands on as values. Deliberately imports nothing at the top that takes time,
because every server starts through this module; a command imports what it needs when it is chosen.

A bridge is a package of its name with two entrances: `serve.run(environment)`, which a client starts, and
`commands.main(arguments, environment)`, which a person types. Both return the exit status.
"""

import os
import sys

from bridgehead import __version__

_HELP = """\
usage: bridgehead BRIDGE [COMMAND ...] | --version | --help

MCP servers, called bridges, on a protocol engine of their own.

{bridges}
  --version   print the version and end
  --help      print this text and end

A bridge's name alone serves it to an MCP client on standard input and output.
"""
_BRIDGES: dict[str, str] = {
    "bitburner": "files of a running game of Bitburner",
    "aoc": "Advent of Code puzzles and solve-speed records",
}
_WRONG_USAGE = 2


def main() -> int:
    """Runs the command that the command line names, and returns the exit status."""
    match sys.argv[1:]:
        case ["--version"]:
            return _print(f"bridgehead {__version__}\n")
        case ["--help" | "-h"]:
            return _print(_HELP.format(bridges="\n".join(f"  {n:11} {a}" for n, a in _BRIDGES.items())))
        case ["--version" | "--help" | "-h" as option, *_]:
            return _refuse(f"{option} takes nothing after it")
        case [name, *arguments] if name in _BRIDGES:
            return _run(name, arguments)
        case [unknown, *_]:
            return _refuse(f"unknown command {unknown!r}")
        case _:
            return _refuse("no command given")


def _run(bridge: str, arguments: list[str]) -> int:
    from importlib import import_module

    from bridgehead.runtime.errors import BridgeError

    try:
        if arguments:
            status = import_module(f"bridgehead.{bridge}.commands").main(arguments, os.environ)
        else:
            status = import_module(f"bridgehead.{bridge}.serve").run(os.environ)
    except BridgeError as error:
        sys.stderr.write(f"bridgehead {bridge}: {error}\n")
        return _WRONG_USAGE
    return int(status)


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _refuse(reason: str) -> int:
    sys.stderr.write(f"bridgehead: {reason}; right would be: bridgehead --version, or bridgehead --help\n")
    return _WRONG_USAGE
