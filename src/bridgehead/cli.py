"""The `bridgehead` command.

Only this module reads `sys.argv` and the environment; it passes them on as values. It imports nothing slow at
the top, because every server starts through it; a command imports what it needs when it runs.

The name of a bridge, or the path of its file, serves it to the client that started this process; with more
words it runs one of the bridge's own commands. Every other command is in `bridgehead.commands`.
"""

import os
import sys

from bridgehead import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than this module does
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from bridgehead.runtime.manifest import Commands, Manifest
    from bridgehead.runtime.settings import Setting

_HELP = """\
usage: bridgehead BRIDGE [COMMAND ...] | COMMAND [...] | help [COMMAND ...] | version

MCP servers, called bridges, on a protocol engine of their own.

bridges (the name alone serves it to an MCP client on standard input and output):
{bridges}

Wherever a bridge is named, the path of a Python file with a bridge of your own works too.

commands:
{commands}

  help        print this text, or the help of a command or bridge
  version     print the version (--version, -V, -v)

See each of them at work, add one to a client's configuration, serve all of them over HTTP:

  bridgehead demo
  bridgehead install cursor aoc
  bridgehead serve

Settings come from the environment and from a file named .env; `bridgehead doctor` shows them.
"""
_WRONG_USAGE = 2
_INTERRUPTED = 130


def main(arguments: "list[str] | None" = None) -> int:
    """Run the command that the command line names, and return the exit status.

    `arguments` replace the command line. The script of another distribution passes its bridge's name.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_closed_streams()
    match sys.argv[1:] if arguments is None else arguments:
        case ["--version" | "-V" | "-v" | "version"]:
            return _guard_output(lambda: _print(f"bridgehead {__version__}\n"))
        case [] | ["help" | "--help" | "-h"] | ["help", "help" | "--help" | "-h"]:
            return _guard_output(lambda: _print(help_text()))
        case ["help", name, *below]:
            return _run(name, [*below, "--help"])
        case ["--version" | "-V" | "-v" | "version" | "--help" | "-h" as option, *_]:
            return _refuse(f"{option} takes no arguments.")
        case words:
            return _run(words[0], words[1:])


def _open_closed_streams() -> None:
    """Open the null device in place of closed standard streams (`>&-`): a socket would get their numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, which is this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _run(name: str, arguments: list[str]) -> int:
    from bridgehead.runtime import env_file
    from bridgehead.runtime.errors import BridgeError

    # Empty means not set, as with every variable: Python then asks the system for the home directory. It
    # would take an empty HOME for `/`.
    if os.environ.get("HOME") == "":
        del os.environ["HOME"]
    try:
        return _choose(name, arguments, env_file.merge(os.environ, env_file.read()))
    except BridgeError as error:
        sys.stderr.write(f"bridgehead {name}: {error}\n")
        return _WRONG_USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except FileNotFoundError:
        if _has_folder():
            raise
        sys.stderr.write(f"bridgehead {name}: The current folder no longer exists. Change to another one.\n")
        return 1


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())  # noqa: PTH109 - paths are strings here
    except FileNotFoundError:
        return False


def _choose(name: str, arguments: list[str], environment: "Mapping[str, str]") -> int:
    """Serve a bridge, run one of its commands, or run a command of the product."""
    from bridgehead.runtime import env_file, manifest, plugins

    bridge = None
    # Built-in bridges first: a server that a client starts does not import the list of commands.
    if not plugins.is_built_in(name):
        from bridgehead.commands import COMMANDS

        if name in COMMANDS:
            from importlib import import_module

            if name == "install":  # what it writes does not have them
                _name_unused_settings(environment)
            return _show(import_module(COMMANDS[name][0]), arguments, environment)
        from bridgehead.runtime import bridge_files

        if bridge_files.is_file(name):
            bridge = bridge_files.load(name)
    try:
        bridge = bridge or plugins.load(name)
    except plugins.UnknownBridge:
        return _refuse(f"Unknown command {name!r}.", like=name)
    if not arguments:
        # On Windows `isatty` is true for NUL as well, so standard error must be a terminal too.
        if os.isatty(0) and (os.name != "nt" or os.isatty(2)):
            sys.stderr.write(
                f"Bridgehead {__version__}: {bridge.title}, waiting for an MCP client on standard input.\n"
                f"A client starts it by itself once `bridgehead install CLIENT {name}` has added it.\n"
                f"By hand: `bridgehead tools {name}` lists its tools, "
                f"`bridgehead call {name} TOOL` calls one.\n"
                "Press Ctrl+C to stop.\n"
            )
        return manifest.serve(bridge, environment, _host_settings(bridge, environment))
    commands = bridge.load_commands()
    if commands is None:
        return _refuse(f"The bridge {name} has no commands of its own.")
    return _show(commands, arguments, env_file.narrow(environment, bridge.settings.declared))


def _name_unused_settings(environment: "Mapping[str, str]") -> None:
    from bridgehead.host.setting_checks import find_unused_settings
    from bridgehead.runtime import plugins

    manifests = {manifest.name: manifest for manifest in plugins.load_usable(lambda _error: None)}
    for unused in find_unused_settings(environment, manifests):
        sys.stderr.write(f"bridgehead install: {unused}\n")


def _host_settings(bridge: "Manifest", environment: "Mapping[str, str]") -> "Collection[Setting[Any]]":
    """Return the settings of the host if a variable may be one of them, or nearly so."""
    own = {setting.name for setting in bridge.settings.declared}
    if not any(name.startswith("BRIDGE") and name not in own for name in environment):
        return ()
    # lazy: the host's settings, which no client sets; they would add 20 ms to the start of a bridge
    from bridgehead.host.settings import HostSettings

    return HostSettings.declared


def _show(command: "Commands", arguments: list[str], environment: "Mapping[str, str]") -> int:
    """Run a command on streams that replace what they cannot encode."""
    from bridgehead.runtime.command_line import tolerate_encoding

    tolerate_encoding(sys.stdout, sys.stderr)
    return _guard_output(lambda: int(command.main(arguments, environment)))


def _guard_output(run: "Callable[[], int]") -> int:
    """Run a function that prints; return 1 if its output is a closed pipe or a full disk."""
    from errno import EINVAL, ENOSPC

    try:
        try:
            status = run()
        finally:
            sys.stdout.flush()  # also when argparse exits after its help
    except OSError as failure:
        # EINVAL is how a closed pipe looks on Windows.
        is_closed = isinstance(failure, BrokenPipeError) or (os.name == "nt" and failure.errno == EINVAL)
        if failure.errno == ENOSPC:
            sys.stderr.write("bridgehead: No space left to write the output. Free some and run it again.\n")
        elif not is_closed:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit fails again
        return 1
    return status


def help_text() -> str:
    """Return what `bridgehead help` prints."""
    from bridgehead.commands import COMMANDS
    from bridgehead.runtime import plugins
    from bridgehead.runtime.command_line import wrap

    bridges = [(name, plugins.load(name).summary) for name in plugins.built_in_names()]
    # For a plugin, show only its package: its summary needs an import, which may be slow or fail.
    bridges += [
        (plugin.name, f"from {plugin.source}") for plugin in plugins.installed_plugins() if not plugin.problem
    ]
    return wrap(
        _HELP.format(
            bridges="\n".join(f"  {name:11} {about}" for name, about in bridges),
            commands="\n".join(f"  {name:11} {about}" for name, (_, about) in COMMANDS.items()),
        )
    )


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _refuse(reason: str, like: str = "") -> int:
    """Print one line with the reason and the most similar command, and return the exit status."""
    from difflib import get_close_matches

    from bridgehead.commands import COMMANDS
    from bridgehead.runtime import plugins

    known = [*plugins.names(), *COMMANDS, "help", "version", "--version", "--help"]
    meant = get_close_matches(like, known, n=1)
    step = f"Did you mean {meant[0]!r}?" if meant else "Run 'bridgehead help' for the list."
    sys.stderr.write(f"{reason} {step}\n")
    return _WRONG_USAGE
