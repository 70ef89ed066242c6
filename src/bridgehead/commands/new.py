"""New: creates a bridge project: code, tests over both protocol eras, README, CI, registry file.

The files are `string.Template`s in `template/`, filled from `choose_names`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from bridgehead import __version__
from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.errors import BridgeError, InvalidArgument

from . import COMMANDS

_ABOUT = """\
Make a project with a bridge of your own. It runs and its tests pass: change it into what you need.

  bridgehead new weather
  cd weather-bridge && make test
"""
_FILES = {
    "pyproject.toml": "pyproject.toml.txt",
    "src/{package}/__init__.py": "init.py.txt",
    "src/{package}/__main__.py": "main.py.txt",
    "src/{package}/bridge.py": "bridge.py.txt",
    "tests/test_bridge.py": "checks.py.txt",
    "Makefile": "Makefile.txt",
    "README.md": "README.md.txt",
    ".github/workflows/test.yml": "workflow.yml.txt",
    "server.json": "server.json.txt",
    ".gitignore": "gitignore.txt",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_NAME_LENGTH = 40


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead new", description=_ABOUT)
    command.add_argument("name", metavar="NAME", help="the bridge's name: lower case letters, digits and -")
    command.add_argument("folder", metavar="FOLDER", nargs="?", help="where (default: NAME-bridge here)")
    return command


def main(arguments: list[str], _environment: Mapping[str, str]) -> int:
    """Write the project and print the next steps."""
    options = parser().parse_args(arguments)
    try:
        names = choose_names(options.name)
        folder = Path(options.folder or names["distribution"])
        write_project(folder, names)
    except BridgeError as error:
        sys.stderr.write(f"bridgehead new: {error}\n")
        return 1
    sys.stdout.write(list_next_steps(folder, names, is_windows=sys.platform == "win32"))
    return 0


def list_next_steps(folder: Path, names: Mapping[str, str], *, is_windows: bool) -> str:
    """Return the commands to run next; Windows has no make."""
    call = f"then `bridgehead call {names['name']} read_note name=welcome` calls its tool"
    steps = {
        "make test": "its tests pass already",
        "make dev": "serves it and restarts it on every change",
        "make install": call,
    }
    if is_windows:
        steps = {
            "py -m pip install --editable .": call,
            "py -m unittest discover -s tests": "its tests pass already",
            f"bridgehead dev {names['package']}.bridge": "serves it and restarts it on every change",
        }
    width = max(map(len, steps))
    lines = [f"  {what:{width}}   {why}\n" for what, why in steps.items()]
    return "".join([f"Your bridge is in {folder}. Next:\n", f"  cd {folder}\n", *lines])


def choose_names(name: str) -> dict[str, str]:
    """Derive the project's names (package, class, settings prefix...) from the bridge's name."""
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        raise InvalidArgument(
            f"{name!r} cannot be the name of a bridge.",
            next_step="Use lower case letters and digits, with - between words, such as weather or my-notes.",
        )
    if name in COMMANDS or name in plugins.names() or name in ("bridgehead", "help"):
        raise InvalidArgument(f"{name!r} is taken.", next_step="Choose another name.")
    words = name.split("-")
    return {
        "name": name,
        "distribution": f"{name}-bridge",
        "package": f"{'_'.join(words)}_bridge",
        "title": " ".join(words).capitalize(),
        "class_name": "".join(word.capitalize() for word in words),
        "prefix": "_".join(words).upper(),
        "minimum": __version__,
    }


def write_project(folder: Path, names: Mapping[str, str]) -> None:
    """Write every file into a folder that is new or empty."""
    template = files(__package__) / "template"
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidArgument(
                f"{folder} already exists.", next_step="Name a folder that does not exist yet."
            )
        for path, source in _FILES.items():
            target = folder / path.format(package=names["package"])
            target.parent.mkdir(parents=True, exist_ok=True)
            text = Template((template / source).read_text(encoding="utf-8")).substitute(names)
            target.write_text(text, encoding="utf-8", newline="\n")
        # `make test` then uses the Python that has Bridgehead, without a network.
        (folder / "local.mk").write_text(f"PYTHON := {Path(sys.executable).as_posix()}\n", encoding="utf-8")
    except OSError as failure:
        raise BridgeError(
            f"Cannot write {failure.filename or folder}: {failure.strerror}.",
            next_step="Name another folder.",
        ) from failure
