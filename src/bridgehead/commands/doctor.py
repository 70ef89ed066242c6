"""Doctor: one screen for everything: versions, settings, each far side, each client's configuration."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version

import msgspec
from rich.console import Console

from bridgehead import __version__
from bridgehead.install.detection import DetectedClient, detect_clients
from bridgehead.install.machine import Machine
from bridgehead.mcp import run_on_loop
from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.env_file import narrow
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, exit_code, settings_finding, table
from bridgehead.runtime.manifest import BrokenPart, Manifest
from bridgehead.runtime.tool_filter import ToolFilterSettings

from . import client_entries, deployed_server

_ABOUT = """\
Checks everything and says how to fix each problem. The exit status is 0 if nothing is wrong.

  bridgehead doctor                          this machine: bridges, host, and what each client starts
  bridgehead doctor mercury --json
  bridgehead doctor host                     what bridgehead serve would do
  bridgehead doctor https://bridges.example.com/mcp
                                             a server as clients see it, with the token in BRIDGEHEAD_TOKEN
"""
HOST = "host"
_LIBRARIES = ("msgspec", "httptools", "websockets")


def parser() -> Parser:
    """Return the parser of the command line."""
    found = Parser(prog="bridgehead doctor", description=_ABOUT)
    about = "bridges, host, or the URL of a server (default: all on this machine)"
    parts = found.add_argument("parts", nargs="*", metavar="BRIDGE", help=about)
    completed_by(parts, lambda *_: (*plugins.names(), HOST))
    found.add_argument("--json", action="store_true", help="print the findings as JSON")
    return found


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Examine, print, and return the exit status."""
    line = parser()
    options = line.parse_args(arguments)
    parts = (*plugins.names(), HOST)
    for name in options.parts:
        if name not in parts and not _is_url(name):
            line.refuse(f"Unknown bridge {name!r}", name, parts)
    found = run_on_loop(examine(options.parts or parts, environment, is_asked=bool(options.parts)))
    if options.json:
        sys.stdout.write(json.dumps(msgspec.to_builtins(found), ensure_ascii=False, indent=2) + "\n")
    else:
        _show(found)
    return exit_code(finding for findings in found.values() for finding in findings)


async def examine(
    names: list[str] | tuple[str, ...], environment: Mapping[str, str], *, is_asked: bool = True
) -> dict[str, list[Finding]]:
    """Look at this installation, at bridges and host, and at the clients; or at servers alone."""
    if names and all(map(_is_url, names)):
        return {url: await deployed_server.examine(url, environment) for url in names}
    clients = [one for one in detect_clients(Machine.here(environment)) if one.is_there]
    used = {name for client in clients for name in client.bridges} | _set_up(environment)
    found = {"bridgehead": [_versions(), _offering(environment), *_refused()]}
    for name in dict.fromkeys(names):
        findings = await _part(name, environment)
        is_meant = is_asked or name == HOST or name in used
        found[name] = findings if is_meant else [_as_unused(finding) for finding in findings]
    found["clients"] = await _clients(clients, environment)
    return found


def _is_url(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _set_up(environment: Mapping[str, str]) -> set[str]:
    """Return the bridges of which a setting of their own is set: somebody means to use them."""
    return {
        name
        for name in plugins.names()
        if any(variable.startswith(f"{name.upper()}_") and environment[variable] for variable in environment)
    }


def _as_unused(finding: Finding) -> Finding:
    """Take a problem of a bridge that nobody uses for what it is: something to know."""
    return msgspec.structs.replace(finding, verdict="note") if finding.verdict == "wrong" else finding


def _versions() -> Finding:
    parts = ", ".join(f"{part} {version(part)}" for part in _LIBRARIES)
    return Finding("version", "right", f"{__version__}, Python {platform.python_version()}, {parts}")


def _offering(environment: Mapping[str, str]) -> Finding:
    try:
        settings = ToolFilterSettings(environment)
    except BridgeError as error:
        return Finding("offered", "wrong", error.message, error.next_step)
    given = [f"{name}={shown}" for name, shown in settings.summary() if name in settings.given]
    return Finding("offered", "right", f"what passes {', '.join(given)}" if given else "every tool")


def _refused() -> list[Finding]:
    """Name the plugins that cannot be used because of their name; the others are parts of their own."""
    return [
        Finding("plugin", "wrong", plugin.problem) for plugin in plugins.installed_plugins() if plugin.problem
    ]


async def _part(name: str, environment: Mapping[str, str]) -> list[Finding]:
    try:
        if name == HOST:
            from bridgehead.host.doctor import examine as examine_host

            return await examine_host(environment)
        return await _examine_bridge(plugins.load(name), environment)
    except (plugins.PluginError, BrokenPart) as error:
        return [Finding("plugin", "wrong", error.message, error.next_step)]
    except BridgeError as error:
        return [Finding("settings", "wrong", error.message, error.next_step)]


async def _examine_bridge(manifest: Manifest, environment: Mapping[str, str]) -> list[Finding]:
    own = narrow(environment, manifest.settings.declared)
    examine_bridge = manifest.load_doctor()
    if examine_bridge is not None:
        return await examine_bridge(own)
    return [settings_finding(manifest.settings(own), own)]


async def _clients(clients: list[DetectedClient], environment: Mapping[str, str]) -> list[Finding]:
    found = []
    for one in clients:
        if one.problem:
            found.append(Finding(one.client.title, "wrong", f"{one.path}: {one.problem}", "Fix the file."))
        elif one.bridges:
            found.append(Finding(one.client.title, "right", f"has {', '.join(one.bridges)} ({one.path})"))
            found += await client_entries.examine(one, environment)
        else:
            advice = f"bridgehead install {one.client.id}"
            found.append(Finding(one.client.title, "note", f"has no bridge yet ({one.path})", advice))
    return found or [
        Finding("clients", "note", "none was found on this machine", "bridgehead install --list")
    ]


def _show(found: dict[str, list[Finding]]) -> None:
    console = Console(highlight=False)
    for title, findings in found.items():
        console.print(f"[bold cyan]{title}[/]")
        console.print(table(findings))
    console.print(_verdict([finding for findings in found.values() for finding in findings]))


def _verdict(findings: list[Finding]) -> str:
    """Sum everything up in a last line."""
    wrong = sum(finding.verdict == "wrong" for finding in findings)
    if wrong:
        noun = "problem" if wrong == 1 else "problems"
        return f"\n[bold red]{wrong} {noun}.[/] The lines with → say how to fix them."
    return "\n[bold green]Everything in use works.[/]"
