"""The `bridgehead` command.

Owns the reading of the command line: nothing else in the distribution looks at `sys.argv` or at the
environment. What it reads it hands on as values. Deliberately imports nothing at the top but `sys`, because
every server starts through this module; a command imports what it needs when it is chosen.
"""

import sys

from bridgehead import __version__

_HELP = """\
usage: bridgehead --version | --help

MCP servers, called bridges, on a protocol engine of their own.

  --version   print the version and end
  --help      print this text and end

The bridges (bitburner, aoc, mercury) become commands here as they arrive.
"""
_WRONG_USAGE = 2


def main() -> int:
    """Runs the command that the command line names, and returns the exit status."""
    match sys.argv[1:]:
        case ["--version"]:
            return _print(f"bridgehead {__version__}\n")
        case ["--help" | "-h"]:
            return _print(_HELP)
        case ["--version" | "--help" | "-h" as option, *_]:
            return _refuse(f"{option} takes nothing after it")
        case [unknown, *_]:
            return _refuse(f"unknown command {unknown!r}")
        case _:
            return _refuse("no command given")


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _refuse(reason: str) -> int:
    sys.stderr.write(f"bridgehead: {reason}; right would be: bridgehead --version, or bridgehead --help\n")
    return _WRONG_USAGE
