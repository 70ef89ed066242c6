"""The facts about this machine and the versions that took part."""

import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from bench.peers import HERE, HOME, Peer, python_of_peers

OURS = ("msgspec", "httptools", "uvloop")


def facts(peers: list[Peer]) -> list[str]:
    """List what the numbers were made with, a line for each fact."""
    return [
        machine(),
        f"Python {platform.python_version()}, Node {_node(peers)}",
        f"ours stands on {ours()}",
        f"Python peers: {python_peers(python_of_peers(), HERE / 'peers.txt')}",
        f"npm peers: {_npm_peers()}",
    ]


def machine() -> str:
    """Name the machine, and say how busy it was at the end."""
    return (
        f"machine: {os.cpu_count()} cores, {_processor()}, {_memory()}, {platform.system()} "
        f"{platform.machine()}; load average at the end {os.getloadavg()[0]:.1f}"
    )


def _processor() -> str:
    """Name the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"


def _memory() -> str:
    """Say how much memory there is."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.0f} GB"


def _node(peers: list[Peer]) -> str:
    """Say which node runs the TypeScript server."""
    commands = [peer.stdio for peer in peers if peer.key == "typescript" and peer.stdio]
    return _said(commands[0][0], "--version").lstrip("v") if commands else "not at hand"


def ours(names: tuple[str, ...] = OURS) -> str:
    """List the versions our own server stands on."""
    found = []
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} missing")
    return ", ".join(found)


def python_peers(python: Path, list_of_peers: Path) -> str:
    """List the versions in an environment of peers."""
    names = [line.split("==")[0].split("[")[0] for line in list_of_peers.read_text().split()]
    ask = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return _said(str(python), "-c", ask, *names) or "not installed"


def _said(*command: str) -> str:
    """Return what a command prints, or nothing if there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _npm_peers() -> str:
    """List the versions in the peers' node folder."""
    found = []
    for line in (HERE / "peers-npm.txt").read_text().split():
        name = line.rpartition("@")[0]
        package = HOME / "node" / "node_modules" / name / "package.json"
        version = json.loads(package.read_text())["version"] if package.is_file() else "not installed"
        found.append(f"{name} {version}")
    return ", ".join(found)
