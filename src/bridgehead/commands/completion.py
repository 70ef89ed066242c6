"""Completion: scripts that let a shell complete `bridgehead` with the Tab key, and the words they ask for."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from bridgehead.install.clients import BY_ID
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.errors import BridgeError

from . import bridges

_ABOUT = """\
Prints the script that completes `bridgehead` in a shell. Put it where the shell finds it:

  bridgehead completion bash >> ~/.bashrc
  bridgehead completion zsh >> ~/.zshrc
  bridgehead completion fish > ~/.config/fish/completions/bridgehead.fish
"""

_SCRIPTS = {
    "bash": """\
_bridgehead() {
    local IFS=$'\\n' before=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
    local words="$(bridgehead completion words -- "${before[@]}" 2>/dev/null)"
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _bridgehead bridgehead
""",
    "zsh": """\
_bridgehead() {
    local -a found
    found=(${(f)"$(bridgehead completion words -- ${words[2,CURRENT-1]} 2>/dev/null)"})
    compadd -a found || _files
}
autoload -Uz compinit && compinit
compdef _bridgehead bridgehead
""",
    "fish": """\
complete -c bridgehead -f -a '(bridgehead completion words -- (commandline -opc)[2..] 2>/dev/null)'
""",
}

_COMMANDS = {
    "aoc": ("leaderboard", "plot", "check"),
    "bitburner": ("doctor", "settings", "simulate"),
    "mercury": ("doctor", "settings", "simulate"),
    "install": (*BY_ID, "--list", "--dry-run", "--remove", "--url"),
    "token": ("add", "list", "revoke"),
    "completion": tuple(_SCRIPTS),
    "serve": ("--host", "--port", "--bridges", "--workers"),
    "call": bridges.NAMES,
    "demo": bridges.NAMES,
    "tools": (*bridges.NAMES, "--json"),
    "doctor": (*bridges.NAMES, "host", "--json"),
}
TOP = (*bridges.NAMES, "serve", "install", "doctor", "tools", "call", "demo", "token", "completion")


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Print a script, or the words that may follow those that are there."""
    if arguments[:1] == ["words"]:
        sys.stdout.write("".join(f"{word}\n" for word in words(arguments[2:], environment)))
        return 0
    parser = Parser(prog="bridgehead completion", description=_ABOUT)
    parser.add_argument("shell", choices=tuple(_SCRIPTS))
    sys.stdout.write(_SCRIPTS[parser.parse_args(arguments).shell])
    return 0


def words(before: list[str], environment: Mapping[str, str]) -> list[str]:
    """Give what may come after some words."""
    match before:
        case []:
            return [*TOP, "--version", "--help"]
        case ["call", bridge] if bridge in bridges.NAMES:
            return list(_tools(bridge, environment))
        case ["call", bridge, tool, *given] if bridge in bridges.NAMES:
            there = {word.partition("=")[0] for word in given}  # bash makes three words of key=value
            return [f"{key}=" for key in _tools(bridge, environment).get(tool, ()) if key not in there]
        case [command]:
            return list(_COMMANDS.get(command, ()))
        case _:
            return []


def _tools(bridge: str, environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    try:
        tools = bridges.bridge(bridge, environment).tools
    except BridgeError:
        return {}
    return {name: tuple(tool.input_schema.get("properties", {})) for name, tool in tools.items()}
