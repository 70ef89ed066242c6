"""Agents: the programs to benchmark, and how each is started, from a TOML file or a preset.

[[agent]]
preset = "claude"          # claude, codex, gemini or opencode
model = "claude-opus-4-5"

[[agent]]
name = "mine"              # its name on the board
command = ["my-agent", "--mcp", "{mcp_config}", "{prompt}"]
env = ["MY_API_*"]         # variables that it gets from yours
files = ["~/.my/key"]      # copied to the same place in its home directory
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridgehead.runtime.errors import InvalidArgument

from ..files.names import clean_name

PASSED_ON = (
    *("PATH", "LANG", "LC_*", "TZ", "TERM"),
    *("SSL_CERT_*", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""Variables that every agent gets; its own `env` adds the keys of its model API."""


class Agent(Struct, frozen=True, forbid_unknown_fields=True):
    """One agent as declared in the file; a preset supplies missing fields."""

    preset: str | None = None
    name: str = ""
    command: list[str] = []
    args: list[str] = []
    """Further arguments of a preset's command."""
    model: str | None = None
    language: str = "Python"
    env: list[str] = []
    set: dict[str, str] = {}
    """Variables with these values."""
    files: list[str] = []
    version: str | None = None
    """Defaults to the output of `COMMAND --version`."""


class Preset(Struct, frozen=True):
    """How to start a well-known agent unattended."""

    command: list[str]
    model_option: str
    env: list[str]
    files: list[str]
    set: dict[str, str] = {}


PRESETS = {
    "claude": Preset(
        [
            *("claude", "-p", "{prompt}", "--output-format", "json"),
            *(
                "--mcp-config",
                "{mcp_config}",
                "--strict-mcp-config",
                "--permission-mode",
                "bypassPermissions",
            ),
        ],
        "--model",
        ["ANTHROPIC_*", "CLAUDE_*"],
        ["~/.claude/.credentials.json"],
        # Without it, Claude Code refuses to run unattended as root, as in a container.
        {"IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1"},
    ),
    "codex": Preset(
        [
            *("codex", "exec", "--json", "--skip-git-repo-check"),
            *("--dangerously-bypass-approvals-and-sandbox", "{prompt}"),
        ],
        "--model",
        ["OPENAI_*", "CODEX_API_KEY"],
        ["~/.codex/auth.json"],
    ),
    "gemini": Preset(
        ["gemini", "-p", "{prompt}", "--output-format", "json", "--yolo"],
        "--model",
        ["GEMINI_*", "GOOGLE_*"],
        ["~/.gemini/oauth_creds.json", "~/.gemini/google_accounts.json"],
    ),
    "opencode": Preset(
        ["opencode", "run", "--format", "json", "{prompt}"],
        "--model",
        ["ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "OPENROUTER_*", "OPENCODE_*"],
        ["~/.local/share/opencode/auth.json"],
    ),
}


def read_agents(path: Path) -> list[Agent]:
    """Read a file of agents. Raises `InvalidArgument` with the problem and the expected form."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        agents = msgspec.convert(document.get("agent", []), list[Agent])
    except FileNotFoundError as missing:
        raise InvalidArgument(
            f"{path} is not there.", next_step="`bridgehead aoc bench --init` writes one to begin with."
        ) from missing
    except (OSError, ValueError) as problem:  # msgspec and tomllib raise ValueErrors
        raise InvalidArgument(
            f"{path} cannot be used: {problem}.", next_step="docs/aoc.md shows a file of agents."
        ) from problem
    if not agents:
        raise InvalidArgument(f"{path} has no agents.", next_step="Add a section [[agent]].")
    filled = [_fill_in(agent) for agent in agents]
    _refuse_twins(filled, path)
    return filled


def plain_agents(declared: list[str]) -> list[Agent]:
    """Return agents given as NAME=COMMAND: programs that read the puzzle and print the answer."""
    agents = []
    for text in declared:
        name, _, command = text.partition("=")
        words = shlex.split(command)
        if not name or not words or '"' in name:
            raise InvalidArgument(
                f"{text!r} is not an agent.", next_step="Write --agent NAME=COMMAND, such as fast=./fast.sh"
            )
        if shutil.which(words[0]) is None:
            raise InvalidArgument(
                f"{words[0]!r}, the command of {name}, is not there, or may not be run.",
                next_step="Name a program that is installed, or a file with the right to be run.",
            )
        runner = [sys.executable, str(Path(__file__).with_name("plain_agent.py")), "{mcp_config}", "{prompt}"]
        agents.append(Agent(name=clean_name(name), command=[*runner, *words], language="–"))
    _refuse_twins(agents, "--agent")
    return agents


def _refuse_twins(agents: list[Agent], where: object) -> None:
    names = [agent.name for agent in agents]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidArgument(
            f"{where} has two agents called {twice!r}.", next_step="Give each a name of its own."
        )


def _fill_in(agent: Agent) -> Agent:
    changes: dict[str, Any] = {"name": clean_name(agent.name or agent.model or agent.preset or "")}
    if agent.preset is not None:
        preset = PRESETS.get(agent.preset)
        if preset is None:
            raise InvalidArgument(
                f"There is no preset {agent.preset!r}.", next_step=f"Presets: {', '.join(PRESETS)}."
            )
        model = [] if agent.model is None else [preset.model_option, agent.model]
        changes |= {
            "command": [*(agent.command or preset.command), *model, *agent.args],
            "env": [*preset.env, *agent.env],
            "files": [*preset.files, *agent.files],
            "set": {**preset.set, **agent.set},
        }
    elif not any("{prompt}" in word for word in agent.command):
        raise InvalidArgument(
            f"The command of {agent.name!r} has no {{prompt}}.",
            next_step="Write {prompt} where the agent takes its task, or name a preset.",
        )
    return msgspec.structs.replace(agent, **changes)


def environment_of(agent: Agent, ours: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return an agent's environment: a few of our variables, those in its `env`, and its own HOME."""
    patterns = (*PASSED_ON, *agent.env)
    passed = {
        name: value for name, value in ours.items() if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    places = {"HOME": home, "USERPROFILE": home, "TMPDIR": home / "tmp", "CODEX_HOME": home / ".codex"}
    places |= {"XDG_CONFIG_HOME": home / ".config", "XDG_DATA_HOME": home / ".local" / "share"}
    return {**passed, **agent.set, **{name: str(place) for name, place in places.items()}}


def prepare_home(home: Path, server: list[str], agent: Agent) -> Path:
    """Write the configuration of every agent that has a preset, and its credentials; return `mcp_config`.

    All of them have the bridge as their only server, under the name `aoc`.
    """
    command, *arguments = server
    stdio = {"command": command, "args": arguments}
    signed_in = (Path.home() / ".gemini" / "oauth_creds.json").is_file()
    gemini = {
        "mcpServers": {"aoc": {**stdio, "trust": True}},
        "security": {
            "auth": {"selectedType": "oauth-personal" if signed_in else "gemini-api-key"},
            "folderTrust": {"enabled": False},
        },
        "general": {"disableAutoUpdate": True},
    }
    opencode = {
        "$schema": "https://opencode.ai/config.json",
        "mcp": {"aoc": {"type": "local", "command": server, "enabled": True}},
        "autoupdate": False,
    }
    # JSON strings and lists of strings are TOML as well.
    codex = f"[mcp_servers.aoc]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
    codex += 'default_tools_approval_mode = "approve"\n'
    texts = {
        "mcp.json": json.dumps({"mcpServers": {"aoc": {"type": "stdio", **stdio}}}),
        ".gemini/settings.json": json.dumps(gemini),
        ".config/opencode/opencode.json": json.dumps(opencode),
        ".codex/config.toml": codex,
    }
    for name, text in texts.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (home / "tmp").mkdir(exist_ok=True)
    for name in agent.files:
        source = Path(name).expanduser()
        # Only files below the home directory can be copied to the same place in another home.
        if source.is_file() and source.is_relative_to(Path.home()):
            target = home / source.relative_to(Path.home())
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            os.chmod(target, 0o600)  # noqa: PTH101 - a credential
    return home / "mcp.json"


STARTER = """\
# Agents to compare with `bridgehead aoc bench`. Keys of their model APIs come from your environment.
# Presets: claude, codex, gemini, opencode. Each needs its command line installed.

[[agent]]
preset = "claude"
# model = "claude-sonnet-4-5"
# name = "sonnet"              # on the board; the model or the preset if it is not given

[[agent]]
preset = "codex"

# Any other command that takes a prompt and MCP servers:
# [[agent]]
# name = "mine"
# command = ["my-agent", "--mcp-config", "{mcp_config}", "{prompt}"]
# env = ["MY_API_KEY"]         # variables that it gets from yours
# files = ["~/.my/key"]        # copied into its empty home directory
"""
