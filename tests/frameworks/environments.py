"""Environments: one for each client, with its pinned packages of PyPI or npm, under `build/frameworks`."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.interop.node import ROOT, node, npm

FOLDER = ROOT / "build" / "frameworks"
UV = "uv==0.13.7"
"""Installs in seconds what pip takes minutes for; it has an environment of its own, too."""


class InstallError(Exception):
    """The packages of a client cannot be installed here."""


@dataclass(frozen=True)
class Client:
    """One framework's client, pinned."""

    name: str
    requirements: tuple[str, ...]
    section: str
    """The heading in docs/clients.md under which its snippet stands."""
    npm: bool = False
    lacks: tuple[str, ...] = ()
    """Transports that its page shows, and that this version does not have yet."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Names in the snippet, and what this version calls them."""
    ci: bool = False
    shows_errors: bool = True
    """Whether its snippet asks for a day that does not exist too."""

    @property
    def package(self) -> str:
        return self.requirements[0].rpartition("@" if self.npm else "==")[0].partition("[")[0].rstrip("=")

    @property
    def version(self) -> str:
        return self.requirements[0].rpartition("@" if self.npm else "==")[2]

    def prepare(self) -> tuple[str, Path]:
        """Make its environment; returns the program that runs its snippet, and the folder to run it in."""
        if self.npm:
            return node(), _prepare_npm(self.requirements)
        python = prepare_python(self.requirements)
        return str(python), python.parents[1]


def read_clients() -> list[Client]:
    listed = tomllib.loads(Path(__file__).with_name("clients.toml").read_text(encoding="utf-8"))
    return [
        Client(
            name,
            tuple(entry.pop("requirements")),
            entry.pop("section"),
            lacks=tuple(entry.pop("lacks", ())),
            renamed=tuple(entry.pop("renamed", {}).items()),
            **entry,
        )
        for name, entry in listed.items()
    ]


def prepare_python(requirements: tuple[str, ...]) -> Path:
    """Make an environment of Python, unless an earlier run did, and return its Python."""
    folder = _folder(requirements)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        uv = str(_prepare_uv())
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
        _run(uv, "pip", "install", "--quiet", "--python", str(python), *requirements)
        (folder / "installed").touch()
    return python


def _prepare_npm(requirements: tuple[str, ...]) -> Path:
    folder = _folder(requirements)
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
        npm("install", "--ignore-scripts", "--save-exact", *requirements, folder=folder)
        (folder / "installed").touch()
    return folder


def _folder(requirements: tuple[str, ...]) -> Path:
    return FOLDER / hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]


def _prepare_uv() -> Path:
    found = shutil.which("uv")
    if found is not None:
        return Path(found)
    folder = FOLDER / "uv"
    program = folder / ("Scripts/uv.exe" if sys.platform == "win32" else "bin/uv")
    if not program.exists():
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(program.with_name("python")), "-m", "pip", "install", "--quiet", UV)
    return program


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise InstallError(done.stderr.strip()[-500:] or "no reason given")
