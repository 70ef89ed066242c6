"""Completion: the scripts that complete `bridgehead` in a shell, and the words that they request.

The words are read from the commands' parsers, so a new option is completed without a change here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module

from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.errors import BridgeError

from . import COMMANDS

_ABOUT = """\
Prints the script that completes `bridgehead` in a shell. Put it where the shell finds it:

  bridgehead completion bash >> ~/.bashrc
  bridgehead completion zsh >> ~/.zshrc
  bridgehead completion fish > ~/.config/fish/completions/bridgehead.fish
  bridgehead completion powershell >> $PROFILE
"""

# A word that ends in = is followed by its value: each script leaves out the space that its shell would add.
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
    "powershell": """\
Register-ArgumentCompleter -Native -CommandName bridgehead -ScriptBlock {
    param($word, $command, $cursor)
    $before = @($command.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.Extent.Text })
    & bridgehead completion words '--' @before 2>$null | Where-Object { $_.StartsWith($word) } |
        ForEach-Object { [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_) }
}
""",
}


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead completion", description=_ABOUT)
    command.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell that the script is for")
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Print a shell's script or, for `words -- ...` (called by the scripts), the next words."""
    if arguments[:1] == ["words"]:
        sys.stdout.write("".join(f"{word}\n" for word in words(arguments[2:], environment)))
        return 0
    sys.stdout.write(_SCRIPTS[parser().parse_args(arguments).shell])
    return 0


def words(before: list[str], environment: Mapping[str, str]) -> list[str]:
    """Return the words that may follow `before`, which excludes `bridgehead` itself."""
    if not before:
        return [*plugins.names(), *COMMANDS, "help", "version", "--version", "--help"]
    if before == ["help"]:
        return [*plugins.names(), *COMMANDS]
    name, *rest = before
    if name in COMMANDS:
        completed: list[str] = import_module(COMMANDS[name][0]).parser().complete(rest, environment)
        return completed
    try:
        commands = plugins.load(name).load_commands()
    except BridgeError:  # a plugin that does not load; a shell has no use for its error
        return []
    return [] if commands is None else commands.parser().complete(rest, environment)
