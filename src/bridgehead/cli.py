"""The `bridgehead` command.

Owns the reading of the command line: nothing else in the distribution looks at `sys.argv` or at the
environment. What it reads it hands on as values. Deliberately imports nothing at the top that takes time,
because every server starts through this module; a command imports what it needs when it is chosen.

A bridge's name alone serves it to the client that started this process; what follows the name is one of its
own commands. Every other command is a module with `main(arguments, environment)`, which returns the exit
status.
"""

import os
import sys

from bridgehead import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than this module does
    from collections.abc import Callable

    from bridgehead.runtime.manifest import Commands

_HELP = """\
usage: bridgehead BRIDGE [COMMAND ...] | COMMAND [...] | --version | --help

MCP servers, called bridges, on a protocol engine of their own.

bridges (the name alone serves it to an MCP client on standard input and output):
{bridges}

commands:
{commands}

  --version   print the version and end
  --help      print this text and end

examples:
  bridgehead install cursor       put the bridges into a client's configuration
  bridgehead demo                 see each of them at work, offline
  bridgehead serve                serve all of them over HTTP

Settings come from the environment and from a file named .env; `bridgehead doctor` shows them.
"""
_COMMANDS: dict[str, tuple[str, str]] = {
    "install": ("bridgehead.install.command", "write bridges into an MCP client's configuration"),
    "serve": ("bridgehead.host.command", "serve bridges over HTTP, to a team"),
    "token": ("bridgehead.host.auth.token_command", "add, list and revoke the tokens of a team"),
    "doctor": ("bridgehead.commands.doctor", "say what is right and what is wrong, and what to do"),
    "tools": ("bridgehead.commands.tools", "list the tools of the bridges"),
    "call": ("bridgehead.commands.call", "call a tool"),
    "demo": ("bridgehead.commands.demo", "show each bridge at work, offline"),
    "completion": (
        "bridgehead.commands.completion",
        "print the script that completes this in a shell",
    ),
}
_WRONG_USAGE = 2
_INTERRUPTED = 130


def main() -> int:
    """Runs the command that the command line names, and returns the exit status."""
    match sys.argv[1:]:
        case ["--version"]:
            return _print(f"bridgehead {__version__}\n")
        case ["--help" | "-h"]:
            return _print(_help())
        case ["--version" | "--help" | "-h" as option, *_]:
            return _refuse(f"{option} takes nothing after it")
        case [name, *arguments] if name in _COMMANDS:
            return _run(name, arguments)
        case [name, *arguments]:
            return _run_bridge(name, arguments)
        case _:
            return _refuse("no command given")


def _run(name: str, arguments: list[str]) -> int:
    from importlib import import_module

    def run(environment: dict[str, str]) -> int:
        return _shown(import_module(_COMMANDS[name][0]), arguments, environment)

    return _guarded(name, run)


def _run_bridge(name: str, arguments: list[str]) -> int:
    """Serve a bridge, or run one of its own commands."""
    from bridgehead.runtime import manifest, plugins

    if not plugins.is_built_in(name):
        return _refuse(f"unknown command {name!r}", like=name)

    def run(environment: dict[str, str]) -> int:
        bridge = plugins.load(name)
        if not arguments:
            return manifest.serve(bridge, environment)
        if bridge.commands is None:
            return _refuse(f"{name} has no commands of its own")
        return _shown(bridge.commands(), arguments, environment)

    return _guarded(name, run)


def _guarded(name: str, run: "Callable[[dict[str, str]], int]") -> int:
    """Run something in the environment, and turn what a person can fix into one line."""
    from bridgehead.runtime.errors import BridgeError

    try:
        return run(_environment())
    except BridgeError as error:
        sys.stderr.write(f"bridgehead {name}: {error}\n")
        return _WRONG_USAGE
    except KeyboardInterrupt:  # a person has seen enough
        return _INTERRUPTED


def _shown(commands: "Commands", arguments: list[str], environment: dict[str, str]) -> int:
    """Run what writes for a person or a pipe, which may read no further or be full."""
    from errno import ENOSPC

    from bridgehead.runtime.plain import written_plainly

    written_plainly(sys.stdout, sys.stderr)
    try:
        status = int(commands.main(arguments, environment))
        sys.stdout.flush()
    except OSError as failure:
        if failure.errno == ENOSPC:
            sys.stderr.write("bridgehead: there is no room to write to. Free some, then run it again.\n")
        elif not isinstance(failure, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to write goes nowhere
        return 1
    return status


def _environment() -> dict[str, str]:
    """Give the environment, with what a file named `.env` in the current folder adds to it."""
    from bridgehead.runtime import env_file

    return env_file.merged(os.environ, env_file.read())


def _help() -> str:
    from bridgehead.runtime import plugins

    return _HELP.format(
        bridges="\n".join(f"  {name:11} {plugins.load(name).summary}" for name in plugins.names()),
        commands="\n".join(f"  {name:11} {about}" for name, (_, about) in _COMMANDS.items()),
    )


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _refuse(reason: str, like: str = "") -> int:
    """Say in one line what is wrong, and what would be right: what was probably meant, or all there is."""
    from difflib import get_close_matches

    from bridgehead.runtime import plugins

    names = [*plugins.names(), *_COMMANDS]
    meant = get_close_matches(like, [*names, "--version", "--help"], n=1)
    right = f"bridgehead {meant[0] if meant else '|'.join(names)}, or bridgehead --help"
    sys.stderr.write(f"bridgehead: {reason}; right would be: {right}\n")
    return _WRONG_USAGE
