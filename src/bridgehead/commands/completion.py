"""Completion: scripts that let a shell complete `bridgehead` with the Tab key, and the words they ask for."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from bridgehead.install.clients import BY_ID
from bridgehead.runtime import plugins
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
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=} || [[ -n $found ]] || _files
}
autoload -Uz compinit && compinit
compdef _bridgehead bridgehead
""",
    "fish": """\
function __bridgehead_words
    set -l found (bridgehead completion words -- (commandline -opc)[2..] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c bridgehead -f -a '(__bridgehead_words)'
""",
}

_ONE_OF = {
    "aoc": ("leaderboard", "plot", "check"),
    "bitburner": ("doctor", "settings", "simulate"),
    "mercury": ("doctor", "settings", "simulate"),
    "install": (*BY_ID, "--list"),
    "token": ("add", "list", "revoke"),
    "completion": tuple(_SCRIPTS),
    "call": plugins.names(),
    "tools": plugins.names(),
}
"""What the word right behind a command is one of."""
_ANY_OF = {
    "install": (
        *plugins.names(),
        *("--remove", "--dry-run", "--scope", "--path", "--name", "--command", "--url"),
        *("--token-env", "--no-token", "--write-secrets", "--force"),
    ),
    "token add": ("--bridges", "--read-only", "--metrics", "--per-minute", "--days"),
    "token list": ("--json",),
    "serve": ("--host", "--port", "--bridges", "--workers", "--tls-cert", "--tls-key", "--read-only"),
    "demo": plugins.names(),
    "tools": ("--json",),
    "doctor": (*plugins.names(), "host", "--json"),
}
"""What may follow a command anywhere, each once."""
_VALUES = {"--scope": ("user", "project"), "--bridges": plugins.names()}
_FREE = frozenset(
    {"--host", "--port", "--workers", "--tls-cert", "--tls-key", "--path", "--name", "--command", "--url"}
    | {"--token-env", "--per-minute", "--days"}
)
"""Options behind which comes something that is not known here."""
TOP = (*plugins.names(), "serve", "install", "doctor", "tools", "call", "demo", "token", "completion")


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
        case ["call", bridge] if bridge in plugins.names():
            return list(_tools(bridge, environment))
        case ["call", bridge, tool, *given] if bridge in plugins.names():
            there = {word.partition("=")[0] for word in given}  # bash makes three words of key=value
            return [f"{key}=" for key in _tools(bridge, environment).get(tool, ()) if key not in there]
        case ["token", "revoke"]:
            return _token_names(environment)
        case [*_, option] if option in _VALUES or option in _FREE:
            return list(_VALUES.get(option, ()))
        case _:
            return _further(before)


def _further(before: list[str]) -> list[str]:
    """Give what may follow a command and has not yet."""
    if len(before) == 1 and before[0] in _ONE_OF:
        return list(_ONE_OF[before[0]])
    commands = (" ".join(before[:2]), before[0])
    offered = next((_ANY_OF[command] for command in commands if command in _ANY_OF), ())
    return [word for word in offered if word not in before[1:]]


def _token_names(environment: Mapping[str, str]) -> list[str]:
    from bridgehead.host.auth.tokens import TokenFile
    from bridgehead.host.factory import tokens_path
    from bridgehead.host.settings import HostSettings

    try:
        return [token.name for token in TokenFile(tokens_path(HostSettings(environment))).read().tokens]
    except BridgeError:
        return []


def _tools(bridge: str, environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    try:
        tools = bridges.make_bridge(bridge, environment).tools
    except BridgeError:
        return {}
    return {name: tuple(tool.input_schema.get("properties", {})) for name, tool in tools.items()}
