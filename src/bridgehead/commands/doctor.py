"""Doctor: checks versions, settings, each far side and each client's configuration on one screen."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from rich.console import Console
from rich.markup import escape

from bridgehead import __version__
from bridgehead.host.doctor import examine as examine_host
from bridgehead.host.setting_checks import find_unused_settings
from bridgehead.install.detection import DetectedClient, detect_clients
from bridgehead.install.machine import Machine
from bridgehead.mcp import run_on_loop
from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.env_file import narrow
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, exit_code, settings_finding, show_findings
from bridgehead.runtime.manifest import BrokenPart
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.tool_filter import ToolFilterSettings

from . import client_entries, deployed_server

_ABOUT = """\
Checks everything and says how to fix each problem. The exit status is 0 if nothing is wrong.

Bridges, host, and what each client starts; one bridge; one of your own, in a file:
  bridgehead doctor
  bridgehead doctor mercury --json
  bridgehead doctor server.py

What `bridgehead serve` would do; a server on another machine:
  bridgehead doctor host
  bridgehead doctor https://bridges.example.com/mcp

The last one checks a server as clients see it, with the token in BRIDGEHEAD_TOKEN.
"""
HOST = "host"
_LIBRARIES = ("msgspec", "httptools", "websockets")


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead doctor", description=_ABOUT)
    about = "bridges (names, files or modules), host, or URLs of servers (default: all on this machine)"
    parts = command.add_argument("parts", nargs="*", metavar="BRIDGE", help=about)
    completed_by(parts, lambda *_: (*bridge_files.suggestions(), HOST))
    command.add_argument("--json", action="store_true", help="print the findings as JSON")
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Examine, print, and return the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    parts = (*plugins.names(), HOST)
    for name in options.parts:
        if _is_url(name):
            _check_url(command, name, options.parts)
        elif name not in parts:
            try:
                bridge_files.find(name)
            except plugins.UnknownBridge:
                command.refuse(f"Unknown bridge {name!r}", name, parts)
    console = Console(highlight=False)
    with console.status("Checking this installation …") as status:

        def show(title: str, findings: list[Finding], following: str) -> None:
            if not options.json:
                console.print(f"[bold cyan]{title}[/]")
                show_findings(console, findings)
            status.update(f"Checking {following} …")

        asked = examine(options.parts or parts, environment, is_asked=bool(options.parts), show=show)
        report = run_on_loop(asked)
    if options.json:
        sys.stdout.write(json.dumps(msgspec.to_builtins(report), ensure_ascii=False, indent=2) + "\n")
    else:
        wrong = sum(finding.verdict == "wrong" for findings in report.values() for finding in findings)
        if wrong:
            noun = "problem" if wrong == 1 else "problems"
            console.print(f"\n[bold red]{wrong} {noun}.[/] The lines with → say how to fix them.")
        else:
            console.print(f"\n[bold green]{escape(_conclude(report))}[/]")
    return exit_code(finding for findings in report.values() for finding in findings)


def _conclude(report: Mapping[str, list[Finding]]) -> str:
    """Sum up a report without problems; claim nothing that was not tried."""
    calls = [finding for url in report if _is_url(url) for finding in report[url] if finding.what == "call"]
    if any(call.verdict == "note" for call in calls):
        return "The server answers, but no call of a tool has succeeded."
    # A client's entry whose token is not set here is in use but was not tried: "Cursor: aoc".
    entries = [finding for finding in report.get("clients", ()) if ": " in finding.what]
    untried = ", ".join(finding.what for finding in entries if finding.verdict == "note")
    if untried:
        return f"No problems found. Not tried: {untried}."
    if any(finding.advice for findings in report.values() for finding in findings):
        return "No problems found. The lines with → say what is not set up yet."
    return "Everything in use works."


async def examine(
    names: list[str] | tuple[str, ...],
    environment: Mapping[str, str],
    *,
    is_asked: bool = True,
    show: Callable[[str, list[Finding], str], None] = lambda _title, _findings, _following: None,
) -> dict[str, list[Finding]]:
    """Check this installation, the named parts and all clients; with URLs only, check just those servers.

    `is_asked` means that the user named the parts: then a problem counts even in a bridge that is not in use.
    Each part is shown as soon as it is checked, with the name of the one that is checked next.
    """
    report: dict[str, list[Finding]] = {}
    order = [*dict.fromkeys(names), "clients"]

    def add(title: str, findings: list[Finding]) -> None:
        report[title] = findings
        following = order[order.index(title) + 1 :] if title in order else order
        show(title, findings, following[0] if following else title)

    if names and all(map(_is_url, names)):
        for url in order[:-1]:
            add(url, await deployed_server.examine(url, environment))
        return report
    clients = [client for client in detect_clients(Machine.here(environment)) if client.is_installed]
    # A bridge counts as in use if a client starts it or one of its own settings is in the environment.
    used = {name for client in clients for name in client.bridges} | {
        name
        for name in plugins.names()
        if any(variable.startswith(f"{name.upper()}_") and environment[variable] for variable in environment)
    }
    libraries = ", ".join(f"{library} {version(library)}" for library in _LIBRARIES)
    versions = f"{__version__}, Python {platform.python_version()}, {libraries}"
    add(
        "bridgehead",
        [
            Finding("version", "right", versions),
            *_examine_path(environment),
            _examine_tool_filter(environment),
            *_examine_names(environment),
            # Plugins whose name cannot be used; the others are examined like our own bridges.
            *(
                Finding("plugin", "wrong", plugin.problem)
                for plugin in plugins.installed_plugins()
                if plugin.problem
            ),
        ],
    )
    for name in dict.fromkeys(names):
        findings = await _examine_part(name, environment)
        if not (is_asked or name == HOST or name in used):
            # A bridge that is not in use must not fail the exit status because it lacks its key.
            findings = [
                msgspec.structs.replace(finding, verdict="note") if finding.verdict == "wrong" else finding
                for finding in findings
            ]
        add(name, findings)
    add("clients", await _examine_clients(clients, environment))
    return report


def _is_url(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _check_url(command: Parser, url: str, parts: list[str]) -> None:
    """Exit if a URL is not one, or is named beside bridges."""
    if not all(map(_is_url, parts)):
        command.error("URLs and bridges cannot be checked together", step="Run it once for each.")
    try:
        parts_of_url = urlsplit(url)
        is_valid = (
            bool(parts_of_url.hostname) and parts_of_url.port != 0 and url.isprintable() and " " not in url
        )
    except ValueError:  # a bracket that is not closed, a port that does not exist
        is_valid = False
    if not is_valid:
        command.error(f"{url!r} is not an address", step="Write it as https://bridges.example.com/mcp.")


def _examine_path(environment: Mapping[str, str]) -> list[Finding]:
    """Note that the shell does not find `bridgehead`, which every printed command begins with."""
    if shutil.which("bridgehead", path=environment.get("PATH")):
        return []
    folder = Path(sys.executable).parent
    advice = f'Run `export PATH="{folder}:$PATH"`, or put it into the profile of your shell.'
    if sys.platform == "win32":
        advice = f"Add {folder} to Path, under Environment Variables in the settings of Windows."
    return [Finding("command", "note", "bridgehead is not on your PATH", advice)]


def _examine_names(environment: Mapping[str, str]) -> list[Finding]:
    """Report every variable that begins like a setting and is none: wrong if another name was meant."""
    manifests = {manifest.name: manifest for manifest in plugins.load_usable(lambda _error: None)}
    return [
        Finding("settings", "wrong" if unused.meant or unused.is_removed else "note", str(unused))
        for unused in find_unused_settings(environment, manifests)
    ]


def _examine_tool_filter(environment: Mapping[str, str]) -> Finding:
    try:
        settings = ToolFilterSettings(environment)
    except BridgeError as error:
        return Finding("offered", "wrong", error.message, error.next_step)
    filters = [f"{name}={shown}" for name, shown in settings.summary() if name in settings.configured]
    return Finding("offered", "right", f"what passes {', '.join(filters)}" if filters else "every tool")


async def _examine_part(name: str, environment: Mapping[str, str]) -> list[Finding]:
    try:
        if name == HOST:
            return await examine_host(environment)
        manifest = bridge_files.load(name)
        own = narrow(environment, manifest.settings.declared)
        examine_bridge = manifest.load_doctor()
        if examine_bridge is not None:
            return await examine_bridge(own)
        return [settings_finding(manifest.settings(own), own)]
    except (plugins.PluginError, BrokenPart) as error:
        return [Finding("plugin", "wrong", error.message, error.next_step)]
    except bridge_files.BridgeFileError as error:
        return [Finding("file", "wrong", error.message, error.next_step)]
    except SettingError as error:
        from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
        where = "in .env" if error.name in from_file else "in this shell's environment"
        advice = error.next_step or f"Correct or unset {error.name} {where}."
        return [Finding("settings", "wrong", error.message, advice)]
    except BridgeError as error:
        return [Finding("settings", "wrong", error.message, error.next_step)]


async def _examine_clients(clients: list[DetectedClient], environment: Mapping[str, str]) -> list[Finding]:
    findings = []
    for detected in clients:
        title, path = detected.client.title, detected.path
        if detected.problem:
            findings.append(Finding(title, "wrong", f"{path}: {detected.problem}", "Fix the file."))
        elif detected.bridges:
            findings.append(Finding(title, "right", f"has {', '.join(detected.bridges)} ({path})"))
            findings += await client_entries.examine(detected, environment)
        else:
            advice = f"Run `bridgehead install {detected.client.id}`."
            findings.append(Finding(title, "note", f"has no bridge yet ({path})", advice))
    return findings or [
        Finding("clients", "note", "none was found on this machine", "Run `bridgehead install`.")
    ]
