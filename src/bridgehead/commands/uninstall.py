"""Uninstall: lists everything that Bridgehead has made for a user, and removes it if that is asked for.

Only folders of our own are removed: what the user named in a setting, such as AOC_DATA_DIR, is theirs. What
is in PostgreSQL or Redis, or on another machine, is not touched.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from bridgehead.host.settings import HostSettings
from bridgehead.install import edit, files
from bridgehead.install.detection import DetectedClient, detect_clients
from bridgehead.install.machine import Machine
from bridgehead.runtime import directories, plugins
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.directories import StateSettings
from bridgehead.runtime.env_file import narrow
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import Kept
from bridgehead.runtime.settings import SettingError, Settings

_ABOUT = """\
Lists what Bridgehead has made outside of its own folder: entries in the files of clients, backups of those
files, and folders with state and data. Nothing is removed.

  bridgehead uninstall

Remove all of it, after one question:
  bridgehead uninstall --everything
"""
_OF_HOST = Kept("state", "host", "tokens of callers, usage of the host")
_UNITS = ("bytes", "kB", "MB", "GB")
_STEP = 1000


class Found(Struct, frozen=True):
    """A folder or file of ours: what it holds, and how much."""

    path: Path
    about: str
    count: int
    size: int


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead uninstall", description=_ABOUT)
    command.add_argument("--everything", action="store_true", help="remove all of it, after one question")
    command.add_argument("--yes", action="store_true", help="do not ask")
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """List, and with --everything remove; return 1 if something could not be removed."""
    command = parser()
    options = command.parse_args(arguments)
    machine = Machine.here(environment)
    clients = [each for each in detect_clients(machine) if each.is_installed]
    backups = [path for each in clients for path in files.backups_of(each.path)]
    found = list(find_folders(environment))
    _show(clients, backups, found)
    if not (any(each.entries for each in clients) or backups or found):
        sys.stdout.write("There is nothing of Bridgehead on this machine but the program itself.\n")
    elif not options.everything:
        sys.stdout.write("Nothing was removed. `bridgehead uninstall --everything` removes all of it.\n")
        return 0
    elif options.yes or _agrees(command):
        return _remove(machine, clients, found)
    else:
        sys.stdout.write("Nothing was removed.\n")
        return 0
    return 0


def find_folders(environment: Mapping[str, str]) -> Iterator[Found]:
    """Find what the host and each bridge keep, with what it is, the most specific path first."""
    state = StateSettings(narrow(environment, StateSettings.declared))
    roots = {
        "state": lambda part: directories.state_folder(state, part),
        "data": directories.user_data,
        "config": directories.user_config,
    }
    kept, named = [_OF_HOST], _named_paths(HostSettings, environment)
    for manifest in plugins.load_usable(lambda error: sys.stderr.write(f"bridgehead: {error}\n")):
        named |= _named_paths(manifest.settings, environment)
        kept += manifest.keeps
        if not any((each.root, each.path) == ("state", manifest.name) for each in manifest.keeps):
            kept.append(Kept("state", manifest.name, f"other state of {manifest.title}"))
    # Windows and macOS have one folder for state and data.
    about: dict[Path, list[str]] = {}
    for each in kept:
        about.setdefault(roots[each.root](each.path), []).append(each.about)
    counted: set[Path] = set()
    for path in sorted(about, key=lambda path: -len(path.parts)):
        own = [file for file in _files(path) if file not in counted]
        counted.update(own)
        # A folder with what the user named in a setting is theirs.
        if path.exists() and not any(path.resolve() in (other, *other.parents) for other in named):
            size = sum(file.lstat().st_size for file in own)
            yield Found(path, ", ".join(about[path]), len(own), size)


def _named_paths(settings: type[Settings], environment: Mapping[str, str]) -> set[Path]:
    """Return every path that a setting names, but for the state directory itself."""
    own = narrow(environment, settings.declared)
    values = set()
    for setting in settings.declared:
        with suppress(SettingError):
            values.add(setting.read(own) if setting is not StateSettings.state_dir else None)
    return {
        Path(value).resolve()
        for value in values
        if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_absolute())
    }


def _files(path: Path) -> list[Path]:
    if path.is_dir() and not path.is_symlink():
        return [file for file in path.rglob("*") if file.is_symlink() or file.is_file()]
    return [path] if path.is_file() or path.is_symlink() else []


def _show(clients: list[DetectedClient], backups: list[Path], found: list[Found]) -> None:
    write = sys.stdout.write
    entries = [each for each in clients if each.entries]
    if entries:
        write("Entries in the files of clients:\n")
    for each in entries:
        scope = " --scope project" if each.scope == "project" and "user" in each.client.scopes else ""
        write(f"  {each.client.title}: {', '.join(each.bridges)} ({each.path})\n")
        write(f"    bridgehead install {each.client.id} --remove{scope}\n")
    if backups:
        write("Backups of those files, from before each change:\n")
    for path in backups:
        write(f"  {path}, {_shown(path.stat().st_size)}\n")
    if found:
        write("Folders:\n")
    for folder in sorted(found, key=lambda folder: folder.path):
        noun = "file" if folder.count == 1 else "files"
        write(f"  {folder.path}\n    {folder.about}: {folder.count} {noun}, {_shown(folder.size)}\n")
    if entries or backups or found:
        write(
            "Entries in project files of other folders are not listed: run this there.\n"
            "The program itself goes with `make clean` in its checkout, or `pip uninstall bridgehead`, "
            "`pipx uninstall bridgehead`, `uv tool uninstall bridgehead`.\n"
        )


def _shown(size: float) -> str:
    for unit in _UNITS:
        if size < _STEP or unit == _UNITS[-1]:
            break
        size /= _STEP
    return f"{size:.3g} {unit}"


def _agrees(command: Parser) -> bool:
    if not sys.stdin.isatty():
        command.error("nobody can be asked", step="Add --yes to remove all of it without a question.")
    with suppress(EOFError):
        question = "Remove all of it? Records, versions and saves cannot be brought back. yes or no: "
        return input(question).strip().lower() in ("y", "yes")
    return False


def _remove(machine: Machine, clients: list[DetectedClient], found: list[Found]) -> int:
    """Remove entries first: a client must not start a server that makes its folders again."""
    problems = []
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    with files.install_lock(machine.home):
        for each in clients:
            try:
                before = files.read(each.path)
                after = edit.take(before, each.client.form, each.client.section, [*each.entries])
                if after != before:
                    files.write(each.path, before, after, stamp)
                for path in files.backups_of(each.path):
                    path.unlink(missing_ok=True)
            except (BridgeError, OSError) as failure:
                problems.append(f"{each.client.title}: {failure}")
    for folder in found:
        try:
            if folder.path.is_dir() and not folder.path.is_symlink():
                shutil.rmtree(folder.path)
            else:
                folder.path.unlink(missing_ok=True)
        except OSError as failure:
            problems.append(f"{folder.path}: {failure.strerror}. Stop what uses it, and run this again.")
        for parent in folder.path.parents:
            if parent.name not in (directories.APPLICATION, *plugins.names()):
                break
            with suppress(OSError):  # it is not empty, so something in it is not ours
                parent.rmdir()
    sys.stderr.writelines(f"bridgehead uninstall: {problem}\n" for problem in problems)
    sys.stdout.write("Some of it is still there.\n" if problems else "All of it was removed.\n")
    return int(bool(problems))
