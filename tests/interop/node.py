"""Node.js and npm packages: owns what is installed under `.node/` at the project root."""

import json
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".node"

# The newest clients need a newer Node.js than many machines have, so it comes from npm as well.
NODE_VERSION = "22.23.3"
SYSTEMS = {"darwin": "darwin", "linux": "linux", "win32": "win"}
MACHINES = {"aarch64": "arm64", "amd64": "x64", "arm64": "arm64", "x86_64": "x64"}


@dataclass(frozen=True)
class Package:
    """One npm package at one version, in a folder of its own so that versions stay apart."""

    name: str
    version: str

    @property
    def folder(self) -> Path:
        return FOLDER / f"{self.name.rpartition('/')[2]}-{self.version}"

    @property
    def home(self) -> Path:
        return self.folder / "node_modules" / self.name

    def install(self) -> None:
        """Install the package, unless an earlier run got to the end of doing so."""
        stamp = self.folder / "installed"
        if stamp.exists():
            return
        print(f"installing {self.name} {self.version}", flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
        npm("install", "--ignore-scripts", "--save-exact", f"{self.name}@{self.version}", folder=self.folder)
        stamp.touch()


def node() -> str:
    """The path of a Node.js that every package here can run on."""
    system, machine = SYSTEMS[sys.platform], MACHINES[platform.machine().lower()]
    runtime = Package(f"node-{system}-{machine}", NODE_VERSION)
    runtime.install()
    return str(runtime.home / "bin" / ("node.exe" if system == "win" else "node"))


def npm(*arguments: str, folder: Path) -> None:
    """Run npm in a folder."""
    program = shutil.which("npm")
    if program is None:
        raise SystemExit("npm is needed to install the official clients; it comes with Node.js.")
    done = subprocess.run(
        [program, *arguments, "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"npm {' '.join(arguments)} failed:\n{done.stderr}")
