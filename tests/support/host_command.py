"""`bridgehead serve` of stand-ins as a real process, and clients of it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import msgspec

from bridgehead.host.auth.tokens import TokenFile, create_token
from tests.support import constants, endable, waiting
from tests.support.stdio_peer import ROOT

PATIENCE = waiting.PATIENCE


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Make the environment of a host that keeps its state in a folder; `module:NAME` sets a constant."""
    own = {"BRIDGEHEAD_STATE_DIR": str(folder), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **more}
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PATH", "COV", "MUTANT"))}
    return kept | constants.split(own)


def add_token(folder: Path, name: str, **options: Any) -> str:
    """Add a token to the file in a folder."""
    entry, secret = create_token(name, 0.0, **options)
    TokenFile(folder / "host" / "tokens.json").add(entry)
    return secret


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "tests.support.host_process", *arguments],
        cwd=ROOT,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


class Command:
    """A running command, and what it logs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._new: Queue[dict[str, Any] | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = 0

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            entry = msgspec.json.decode(line) if line.startswith("{") else {"event": line.strip()}
            self.lines.append(entry)
            self._new.put(entry)
        self._new.put(None)

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait for something to be logged, so many times from now on."""
        return self._wait(lambda entry: entry["event"] == event, event, count)

    def wait_for_level(self, level: str) -> dict[str, Any]:
        """Wait for a line of a level."""
        return self._wait(lambda entry: entry.get("level") == level, level, 1)

    def _wait(self, fits: Callable[[dict[str, Any]], bool], wanted: str, count: int) -> dict[str, Any]:
        while True:
            try:
                entry = self._new.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"{wanted!r} was not logged: {self.lines}") from None
            assert entry is not None, f"it ended before {wanted!r}: {self.lines}"
            count -= fits(entry)
            if not count:
                return entry

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end, and return its exit status."""
        endable.send(self.process, number)
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    workers: int = 1,
    cwd: Path = ROOT,
    settings: Mapping[str, str] | None = None,
    **more: str,
) -> Iterator[Command]:
    """Run the command while the block runs."""
    process = subprocess.Popen(
        [*endable.words_for("tests.support.host_process"), "--port", "0", *arguments],
        cwd=cwd,
        env=environment(folder, **(settings or {}), **more),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    command = Command(process)
    try:
        url: str = command.wait_for("serving", workers)["url"]
        command.port = int(url.rpartition(":")[2].removesuffix("/mcp"))
        yield command
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)
        for pipe in (process.stdin, process.stderr):
            assert pipe is not None
            pipe.close()
