"""Command: `bridgehead install`, its options and its output."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bridgehead.runtime import bridge_files, env_file, plugins
from bridgehead.runtime.command_line import WRONG_USAGE, Parser, completed_by
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.lines import split_lines
from bridgehead.runtime.manifest import Manifest, read_settings
from bridgehead.runtime.settings import SettingError

from . import entries, files, plan
from .clients import BY_ID, Client
from .detection import detect_clients
from .errors import InstallError, Malformed
from .machine import Machine, installed_command, named_command

_ABOUT = """\
Write bridges into the configuration of an MCP client. The rest of the file is not changed.

Ask for client and bridges; list the clients and their bridges:
  bridgehead install
  bridgehead install --list

One bridge for this user, in every client on this machine, in this folder's .vscode, or from a file of yours:
  bridgehead install cursor aoc
  bridgehead install all aoc
  bridgehead install vscode aoc --scope project
  bridgehead install cursor server.py

A server on another machine:
  bridgehead install claude-code --url https://bridges.example.com

Show the changes and write nothing; remove what was added:
  bridgehead install codex all --dry-run
  bridgehead install cursor --remove
"""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FAILED = 1
ALL = "all"
"""As CLIENT: every client on the machine; as BRIDGE: every bridge."""


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Install bridges on this machine, and return the exit status."""
    return run(arguments, Machine.here(environment), bridge_files.load)


def run(arguments: list[str], machine: Machine, load_manifest: Callable[[str], Manifest]) -> int:
    """Install, remove or list on a machine, and return the exit status."""
    command = parser()
    options = command.parse_intermixed_args(arguments)
    _order_names(command, options)
    if options.list:
        for detected in detect_clients(machine):
            state = "found" if detected.is_installed else "not found"
            has = detected.problem or ", ".join(detected.bridges) or "no bridges"
            scope = f" ({detected.scope})" if detected.scope not in detected.client.scopes[:1] else ""
            title = detected.client.id + scope
            line = f"{title:24} {state:10} {has if detected.is_installed else '':32} {detected.path}"
            # In a narrow terminal, the path goes below. Not in a pipe: there a line is a client.
            if sys.stdout.isatty() and len(line) > shutil.get_terminal_size().columns:
                line = f"{title:16} {state:10} {has if detected.is_installed else ''}".rstrip()
                line += f"\n    {detected.path}"
            sys.stdout.write(f"{line}\n")
        return 0
    try:
        if options.client is None:
            options.client = _ask_for_client(command, machine)
        is_every = ALL in options.bridge
        if is_every:
            options.bridge = []
        _check(command, options)
        # With --url, the server's operator decides which bridges are served, and --remove removes every entry
        # of ours.
        if not (options.bridge or is_every or options.remove or options.url):
            options.bridge = _ask_for_bridges(command, options.client, machine.environment)
        if not (options.remove or options.url):
            machine = _ask_for_settings(options, machine, load_manifest)
        # Reading, planning and writing are one step: two installations would overwrite each other's entries.
        with files.install_lock(machine.home):
            return _apply(options, machine, load_manifest)
    except BridgeError as failure:
        sys.stderr.write(f"bridgehead install: {failure}\n")
        is_usage = isinstance(failure, SettingError | bridge_files.BridgeFileError)
        return WRONG_USAGE if is_usage else _FAILED


def parser() -> Parser:
    """Return the parser of the command line."""
    usage = "%(prog)s [CLIENT [BRIDGE ...]] [options]"
    command = Parser(prog="bridgehead install", description=_ABOUT, usage=usage)
    add = command.add_argument
    about = f"{', '.join(BY_ID)}; all means every one that is found"
    completed_by(add("client", metavar="CLIENT", nargs="?", help=about), lambda *_: (ALL, *BY_ID))
    about = f"{', '.join(plugins.names())}, a file or a module; all means every bridge (default: asks)"
    bridge = add("bridge", metavar="BRIDGE", nargs="*", help=about)
    completed_by(bridge, lambda *_: bridge_files.suggestions())
    add("--list", action="store_true", help="show which clients are found, and which bridges each has")
    add("--remove", action="store_true", help="remove the bridges")
    add("--dry-run", action="store_true", help="show the changes without writing them")
    add("--scope", choices=("user", "project"), help="for this user, or for the project in this folder")
    add("--path", metavar="FILE", help="the configuration file, if it is not in its usual place")
    add("--name", metavar="NAME", default="", help="the server's name, with one bridge")
    add("--command", metavar="COMMAND", help="how to start Bridgehead (default: this installation)")
    add("--url", metavar="URL", default="", help="use the server of a team, instead of starting one here")
    add("--token-env", metavar="NAME", default="BRIDGEHEAD_TOKEN", help="the variable with its token")
    add("--no-token", action="store_true", help="the server at --url needs no token")
    add(
        "--write-secrets", action="store_true", help="write secrets into the file, not the names of variables"
    )
    about = "let tools begin with the server's name (default: only in mcp.json, which any program may read)"
    add("--prefix-tools", action=argparse.BooleanOptionalAction, help=about)
    add("--force", action="store_true", help="replace or remove a server of the same name that is not ours")
    return command


def _order_names(parser: Parser, options: argparse.Namespace) -> None:
    """Let client and bridges be typed in either order; exit if none of them is a client."""
    words = [options.client, *options.bridge]
    if options.client is None or options.client in BY_ID:
        return
    client = next((word for word in words[1:] if word in BY_ID), options.client)
    if client not in (ALL, *BY_ID):
        parser.refuse(f"Unknown client {client!r}", client, (ALL, *BY_ID))
    words.remove(client)
    options.client, options.bridge = client, words


def _check(parser: Parser, options: argparse.Namespace) -> None:
    """Exit with a usage error for options that are invalid or do not go together."""
    for at, name in enumerate(options.bridge):
        try:
            # --remove also takes a deleted file. Paths are made absolute: the client starts in another
            # folder.
            is_gone = options.remove and bridge_files.is_file(name)
            source = None if is_gone else bridge_files.find(name)
        except plugins.UnknownBridge:
            parser.refuse(f"Unknown bridge {name!r}", name, plugins.names())
        if is_gone or source is not None:
            options.bridge[at] = bridge_files.make_absolute(name) if source is None else source.target
    if options.url and any(map(bridge_files.is_file, options.bridge)):
        parser.error("--url goes with names of bridges, not with files")
    try:
        address = urlsplit(options.url)
        _ = address.port
    except ValueError:  # such as a bracket that is not closed, or a port that does not exist
        address = urlsplit("")
    is_one = len(set(options.bridge)) == 1 or address.path.rstrip("/").endswith("/mcp") or options.remove
    if options.name and not (is_one and _NAME.fullmatch(options.name)):
        parser.error("--name takes letters, digits, - and _, and goes with one bridge")
    if options.url and (address.scheme not in ("http", "https") or not address.hostname):
        parser.error("--url takes an address such as https://bridges.example.com")
    if options.no_token and not options.url:
        parser.error("--no-token goes with --url")
    if not _VARIABLE.fullmatch(options.token_env):
        parser.error("--token-env takes the name of an environment variable, not the token")
    if options.client == ALL:
        if options.path or options.scope == "project":
            parser.error(f"{'--path' if options.path else '--scope project'} goes with one client")
        return
    scopes = BY_ID[options.client].scopes
    if options.scope and options.scope not in scopes:
        parser.error(f"{BY_ID[options.client].title} has only --scope {scopes[0]}")


def _ask_for_client(parser: Parser, machine: Machine) -> str:
    """Ask for the client to change; without a terminal, exit and offer one that is found."""
    detected = [
        each.client.id for each in detect_clients(machine) if each.is_installed and each.scope == "user"
    ]
    example = detected[0] if detected else "cursor"
    if not sys.stdin.isatty():
        names = ", ".join(detected) or "none"
        step = (
            f"Found on this machine: {names}. `bridgehead install {example} aoc` adds a bridge to a client; "
        )
        parser.error("no client given", step=f"{step}`bridgehead install --list` lists all clients.")
    sys.stdout.write("Which client?\n")
    for client in BY_ID.values():
        sys.stdout.write(f"  {client.id:15} {client.title}{', found' if client.id in detected else ''}\n")
    chosen = _ask(f"Its name{f' [{example}]' if detected else ''}: ") or (example if detected else "")
    if not chosen:
        parser.error("no client given", step="Nothing was written.")
    if chosen not in (ALL, *BY_ID):
        parser.refuse(f"Unknown client {chosen!r}", chosen, (ALL, *BY_ID))
    return chosen


def _ask(question: str) -> str:
    """Read one line; the end of the input (Ctrl+D) counts as an empty one."""
    try:
        return input(question).strip()
    except EOFError:
        sys.stdout.write("\n")
        return ""


def _ask_for_bridges(parser: Parser, client: str, environment: Mapping[str, str]) -> list[str]:
    """Ask which bridges to install; without a terminal, exit and say how to name them.

    Never all by default: their tools would cost every conversation of the client tokens.
    """
    names = plugins.names()
    if not sys.stdin.isatty():
        step = f"Choose from {', '.join(names)}: for example `bridgehead install {client} {names[0]}`."
        parser.error("no bridge given", step=f"{step} `bridgehead install {client} all` adds all of them.")
    in_use = [
        name for name in names if any(variable.startswith(f"{name.upper()}_") for variable in environment)
    ]
    sys.stdout.write("Which bridges?\n")
    for name in names:
        about = plugins.load(name).summary if plugins.is_built_in(name) else "a plugin"
        sys.stdout.write(f"  {name:11} {about}\n")
    default = f" [{' '.join(in_use)}]" if in_use else ""
    chosen = _ask(f"Names separated by spaces, or all{default}: ").replace(",", " ").split() or in_use
    for name in chosen:
        if name not in (*names, ALL):
            parser.refuse(f"Unknown bridge {name!r}", name, (*names, ALL))
    if not chosen:
        parser.error("no bridge given", step="Nothing was written.")
    return [] if ALL in chosen else chosen


def _ask_for_settings(
    options: argparse.Namespace, machine: Machine, load_manifest: Callable[[str], Manifest]
) -> Machine:
    """Ask at a terminal for what a bridge should not run without, such as a budget, unless it is set."""
    if not sys.stdin.isatty():
        return machine
    added: dict[str, str] = {}
    for name in options.bridge or plugins.names():
        in_files = {
            variable
            for detected in detect_clients(machine)
            if detected.client.id == options.client
            for variable in entries.variables_of(detected.entries.get(options.name or name))
        }
        try:
            manifest = load_manifest(name)
        except plugins.PluginError:  # the plan's notes say it
            continue
        settings = {setting.name: setting for setting in manifest.settings.declared}
        for field in manifest.form:
            if not field.question or field.variable in in_files or machine.environment.get(field.variable):
                continue
            while answer := _ask(f"{field.question} "):
                if settings[field.variable].accepts(answer):
                    added[field.variable] = answer
                    break
                sys.stdout.write(f"Expected {settings[field.variable].kind.wanted}.\n")
    return msgspec.structs.replace(machine, environment=env_file.extend(machine.environment, added))


def _apply(options: argparse.Namespace, machine: Machine, load_manifest: Callable[[str], Manifest]) -> int:
    has_changed, failures = False, 0
    withheld: dict[str, list[str]] = {}
    if options.client != ALL:
        has_changed = _apply_to(BY_ID[options.client], options, machine, load_manifest, withheld)
    else:
        detected = [each for each in detect_clients(machine) if each.is_installed and each.scope == "user"]
        if not detected:
            raise InstallError(
                "No MCP client was found on this machine.",
                next_step="Name one, such as `bridgehead install cursor`; --list shows all of them.",
            )
        for client in (each.client for each in detected):
            try:
                has_changed |= _apply_to(client, options, machine, load_manifest, withheld)
            except InstallError as failure:  # one client that fails does not stop the others
                failures += 1
                sys.stderr.write(f"{client.title}: {failure}\n")
    if has_changed and options.url and not (options.dry_run or options.remove):
        sys.stdout.write(f"\nNext:\n  `bridgehead doctor {options.url}` checks the connection.\n")
    elif has_changed and not (options.dry_run or options.remove):
        # Once, after all clients: these steps are about the bridges, not about a client.
        sys.stdout.write("\nNext:\n")
        for name in dict.fromkeys(options.bridge or plugins.names()):
            try:
                manifest = load_manifest(name)
            except plugins.PluginError:  # the plan's notes already say it
                continue
            steps = withheld.get(name, [])
            # Without its secret in the only client, a bridge cannot answer a first question yet.
            if manifest.first_step is not None and (not steps or options.client == ALL):
                steps = [*steps, manifest.first_step(read_settings(manifest, machine.environment))]
            sys.stdout.writelines(f"  {manifest.name}: {step}\n" for step in steps)
        sys.stdout.write("  `bridgehead doctor` checks all of it.\n")
    return _FAILED if failures else 0


def _apply_to(
    client: Client,
    options: argparse.Namespace,
    machine: Machine,
    load_manifest: Callable[[str], Manifest],
    withheld: dict[str, list[str]],
) -> bool:
    """Change the file of one client, or print the difference; return whether there is one.

    Adds to `withheld`, by bridge, what to do about secrets that the client does not get.
    """
    if options.path:
        # expanduser, not Path.expanduser: that one raises if there is no home.
        path = Path(machine.folder, os.path.expanduser(options.path))  # noqa: PTH111
    else:
        path = files.choose(client.places(machine, options.scope or client.scopes[0]))
    command: tuple[str, ...] = ()
    if not options.remove and not options.url:
        command = (
            installed_command()
            if options.command is None
            else named_command(options.command, is_windows=machine.is_windows)
        )
    request = plan.InstallRequest(
        client=client,
        bridges=tuple(dict.fromkeys(options.bridge)),
        name=options.name,
        command=command,
        url=options.url,
        token_variable="" if options.no_token else options.token_env,
        write_secrets=options.write_secrets,
        prefix_tools=client.prefix_tools if options.prefix_tools is None else options.prefix_tools,
        force=options.force,
    )
    text = files.read(path)
    try:
        planned = (
            plan.remove(text, request)
            if options.remove
            else plan.install(text, request, machine.environment, load_manifest)
        )
    except Malformed as failure:
        raise InstallError(f"{path}:{failure}. Nothing was written.") from None
    for bridge, variables in planned.withheld.items():
        # One line to copy, with the bridge as given: a bridge in a file has an absolute path by now.
        again = f"bridgehead install {client.id} {bridge} --write-secrets"
        withheld.setdefault(bridge, []).append(
            f"{client.title} does not get {' and '.join(variables)}. "
            f"To write the secret into its file, run `{again}`."
        )
    has_changed = planned.after != planned.before
    if options.dry_run:
        sys.stdout.writelines(_difference(path, planned))
        return has_changed
    backup = None
    if has_changed:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        backup = files.write(path, planned.before, planned.after, stamp)
    sys.stdout.writelines(f"{line}\n" for line in _report(client, path, planned, backup))
    return has_changed


def _report(client: Client, path: Path, planned: plan.Plan, backup: Path | None) -> Iterator[str]:
    yield f"{client.title}: {path}"
    width = max(map(len, planned.changes), default=0)
    for name, change in planned.changes.items():
        yield f"  {name:{width}}  {change}"
    for note in planned.notes:
        yield f"  {note}"
    if planned.after is None and planned.before is not None:
        yield "  Nothing else was in the file, so it was removed."
    if backup is not None:
        yield f"  Backup of the file: {backup.name}"
    if planned.after != planned.before:
        # Some clients start a new server only after the user has trusted it.
        trust = f" {client.trust}" if client.trust else ""
        yield f"  Restart {client.title} to see the change.{trust}"
    else:
        yield "  Nothing had to be changed."


def _difference(path: Path, planned: plan.Plan) -> Iterator[str]:
    """Yield the lines of a unified diff with its secrets masked, and the plan's notes."""
    # A file may hold a secret as it is or with JSON escapes, with or without those for non-ASCII text.
    spellings = {
        spelling
        for secret in planned.hidden
        for spelling in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    }
    before, after = (split_lines(text or "") for text in (planned.before, planned.after))
    lines = list(difflib.unified_diff(before, after, str(path), f"{path} (after)", lineterm=""))
    for line in lines or [f"{path}: nothing would change"]:
        shown = line
        # Longest first: a secret may contain another one.
        for spelling in sorted(spellings, key=len, reverse=True):
            shown = shown.replace(spelling, "(secret)")
        yield f"{shown}\n"
    yield from (f"# {note}\n" for note in planned.notes)
