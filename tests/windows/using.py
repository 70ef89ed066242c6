"""Using: what people on Windows start: the .pyz, the .mcpb bundles, and a server that Ctrl-C ends."""

import json
import os
import pty
import select
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bridgehead.runtime import plugins
from release import bundle, dist

from .rig import ROOT, Rig, as_windows, install_packages
from .suite import Outcome

PATIENCE = 120.0
CTRL_C = b"\x03"
_MOMENT = 1_000_000_000
"""What files are dated; nobody compares what is built here."""
_MAKE = """
import sys
from pathlib import Path
from release import archive
archive.make(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
"""
_MESSAGES = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "using", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


def run(rig: Rig) -> list[Outcome]:
    """Try everything, and return what came of each."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel, _ = dist.distributions(folder / "dist", _MOMENT)
        archive = make_archive(rig, wheel, folder)
        tries = {
            f"archive of {name}": partial(serves, rig, "-S", as_windows(archive), name)
            for name in plugins.built_in_names()
        }
        for name in plugins.built_in_names():
            start = unpack_bundle(name, wheel, folder / f"bundle \u00fc {name}")
            tries[f"bundle of {name}"] = partial(serves, rig, as_windows(start))
        tries["Ctrl-C ends serve"] = partial(ends_at_ctrl_c, rig)
        return [_try(name, act) for name, act in tries.items()]


def _try(name: str, act: Callable[[], None]) -> Outcome:
    began = time.monotonic()
    try:
        act()
    except (AssertionError, OSError, subprocess.TimeoutExpired) as failure:
        print(f"  FAILED {name}: {failure}", flush=True)
        return Outcome(f"tests/using/{name}", "failed", time.monotonic() - began, str(failure))
    return Outcome(f"tests/using/{name}", "passed", time.monotonic() - began, "")


def make_archive(rig: Rig, wheel: Path, folder: Path) -> Path:
    """Make the single file as its release for Windows is made: of that system's wheels, on that system."""
    site, target = folder / "site", folder / "bridgehead.pyz"
    install_packages(rig, dist.LOCKED, site)
    with zipfile.ZipFile(wheel) as ours:
        ours.extractall(site)
    rig.run(rig.command("-c", _MAKE, as_windows(target), as_windows(site), str(_MOMENT)), cwd=ROOT)
    return target


def unpack_bundle(name: str, wheel: Path, folder: Path) -> Path:
    """Make a bundle and unpack it, and return the program that a client starts."""
    folder.mkdir()
    made = folder / "made.mcpb"
    locked = dist.LOCKED.read_text(encoding="utf-8")
    bundle.make(made, plugins.load(name), wheel, locked, dist.read_project(), _MOMENT)
    with zipfile.ZipFile(made) as packed:
        packed.extractall(folder / "content")
    return folder / "content" / bundle.ENTRY_POINT


def serves(rig: Rig, *arguments: str) -> None:
    """See that a server shakes hands, lists its tools and ends with its client."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            rig.command(*arguments),
            input="".join(json.dumps(message) + "\n" for message in _MESSAGES),
            env=rig.environment(BRIDGEHEAD_STATE_DIR=as_windows(Path(home)), MERCURY_API_KEY="sk_1"),
            cwd=home,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = {
        message["id"]: message for message in map(json.loads, done.stdout.splitlines()) if "id" in message
    }
    assert answers[1]["result"]["protocolVersion"] == "2025-11-25", done.stdout
    assert answers[2]["result"]["tools"], done.stdout


def ends_at_ctrl_c(rig: Rig) -> None:
    """See that `serve` in a terminal says how to end it, ends so, and says that it has."""
    words = ("-m", "bridgehead", "serve", "--port", "0", "--bridges", "aoc")
    with _terminal(rig.command(*words), rig.environment(TERM="xterm")) as (process, terminal):
        said = _read_until(terminal, b"serving")
        os.write(terminal, CTRL_C)
        said += _read_until(terminal, b"ended")
        assert process.wait(PATIENCE) == 0, said


@contextmanager
def _terminal(
    command: list[str], environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command in a terminal of its own."""
    ours, theirs = pty.openpty()
    try:
        # What is typed becomes a signal only in the terminal that controls a session.
        controlled = ["setsid", "--ctty", "--wait", *command]
        process = subprocess.Popen(controlled, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(ours)


def _read_until(terminal: int, mark: bytes) -> bytes:
    said = b""
    until = time.monotonic() + PATIENCE
    while mark not in said:
        assert time.monotonic() < until, said
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                said += os.read(terminal, 65_536)
            except OSError:  # nobody has the terminal open any more
                assert mark in said, said
    return said
