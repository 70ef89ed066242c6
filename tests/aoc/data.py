"""A data directory of the aoc bridge: owns how a test fills it, looks into it and serves it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from bench.aoc.kills import unmeasured
from bridgehead.aoc.bridge import make_bridge
from bridgehead.aoc.files.day_file import DayFile
from bridgehead.aoc.files.entries import NewEntry, format_timestamp
from bridgehead.aoc.files.locking import LOCK_FILE, FolderLock
from bridgehead.aoc.files.records import read_day
from bridgehead.aoc.files.seals import Seals
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import LOCK_SECONDS, Workspace
from bridgehead.mcp import Bridge
from bridgehead.mcp.revisions import REVISIONS
from bridgehead.runtime.timing import SystemClock
from tests.support.checked import connect
from tests.support.person import COMMAND
from tests.support.posix import fcntl
from tests.support.stdio_peer import ROOT, Peer
from tests.support.waiting import PATIENCE

ONLY_FILES = pytest.mark.parametrize("data", ["files"], indirect=True)
"""For what has no counterpart in a database: corrupt files, locks, the layout of a file."""
CONTRACT = REVISIONS["2024-11-05"]
"""The revision whose clients get the contract's error codes."""
QUICKLY = 0.02
"""How often a test's bridge looks for changes, in seconds."""


class Data:
    """One data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.instructions = folder / "instructions"
        self.speeds = folder / "speeds"
        self.instructions.mkdir(parents=True, exist_ok=True)

    def puzzle(self, day: int, first: str | bytes, second: str | bytes | None = None) -> None:
        """Put the text of a day there."""
        for phase, text in ((1, first), (2, second)):
            if text is not None:
                data = text if isinstance(text, bytes) else text.encode()
                (self.instructions / f"Day{day:02}_phase{phase}.md").write_bytes(data)

    def speeds_file(self, day: int) -> Path:
        """Give the path of a day's records."""
        return self.speeds / f"day{day:02}.json"

    def put_speeds(self, day: int, content: Any) -> bytes:
        """Put a day's file there: bytes as they are, anything else as JSON, a list as its entries."""
        self.speeds.mkdir(exist_ok=True)
        if isinstance(content, list):
            content = {"day": day, "entries": content}
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.speeds_file(day).write_bytes(data)
        return data

    def entries(self, day: int) -> list[dict[str, Any]]:
        """Read a day's records as any JSON reader would."""
        document = json.loads(self.speeds_file(day).read_bytes())
        assert document["day"] == day
        entries: list[dict[str, Any]] = document["entries"]
        return entries

    def take_in(self) -> None:
        """Do nothing: the records are where they belong."""

    def environment(self, **more: str) -> dict[str, str]:
        """Give the environment that serves this directory."""
        state = str(self.folder.parent / "state")
        return {"AOC_DATA_DIR": str(self.folder), "BRIDGEHEAD_STATE_DIR": state, **more}

    def seals(self, year: int = 2025) -> Seals:
        """Give the seals of the server of this directory."""
        state = self.folder.parent / "state" / "aoc"
        state.mkdir(parents=True, exist_ok=True)
        return Seals(lambda: state / "grade.key", year)

    def bridge(self, **more: Any) -> Bridge[Workspace]:
        """Make a bridge in memory that serves this directory; `lock_wait` is how long its writers wait."""
        lock_wait = more.pop("lock_wait", LOCK_SECONDS)
        settings = AocSettings(self.environment(**more))
        return make_bridge(settings, watch_every=QUICKLY, lock_wait=lock_wait)

    @contextmanager
    def served(self, **more: Any) -> Iterator[Peer]:
        """Serve this directory with the real command, as a process; `popen` has options for starting it.

        One that is cut short leaves no measured coverage behind, which would be half a file.
        """
        options = more.pop("popen", {})
        inherited = unmeasured() if more.pop("is_cut_short", False) else os.environ
        their_input, outgoing = os.pipe()
        incoming, their_output = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-m", "bridgehead", "aoc"],
            stdin=their_input,
            stdout=their_output,
            cwd=ROOT,
            env={**inherited, **self.environment(**more)},
            **options,
        )
        os.close(their_input)
        os.close(their_output)
        peer = Peer(process, outgoing, incoming)
        try:
            yield peer
        finally:
            peer.dispose()


def entry(
    llm: str, time: int, phase: int = 1, timestamp: str = "2025-12-01T10:30:00.000Z", **more: Any
) -> dict[str, Any]:
    """Make an entry as the contract has it, and what more it may have."""
    return {"llm": llm, "phase": phase, "speedMs": time, "timestamp": timestamp, **more}


SECONDS = 10.0
"""How long a test's writer waits for a lock."""


def open_day(data: Data, day: int = 1) -> DayFile:
    """Open a day's file with a lock of its own, as another process has it."""
    return DayFile(FolderLock(str(data.speeds), SECONDS), day, SystemClock())


def put_graded(data: Data, *entries: NewEntry, day: int = 1) -> None:
    """Put records there as the server does that assigned their grades."""
    lock = FolderLock(str(data.speeds), SECONDS)
    DayFile(lock, day, SystemClock(), seals=data.seals()).append(list(entries))


def new(time: int, llm: str = "gpt4") -> NewEntry:
    """Make an entry to write."""
    return NewEntry(llm, 1, time, format_timestamp(1764585000.0 + time))


def times(data: Data) -> list[int]:
    """Return all times of the first day, as everything of ours reads them."""
    found = read_day(str(data.speeds), 1)
    return [] if found is None else [entry.time for entry in found.entries]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, as another process would."""
    folder.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        with FileLock(folder / LOCK_FILE):
            yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def first_journal(data: Data) -> Path:
    """Return where the journal of day 1 is."""
    return data.speeds / ".day01.journal"


def typed(data: Data, *arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Run `bridgehead aoc …` as a person would, with something typed in."""
    return subprocess.run(
        [COMMAND, "aoc", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "COLUMNS": "100", **data.environment(**more)},
    )


async def record(data: Data, arguments: dict[str, Any], **settings: str) -> Any:
    """Record a run as a client does, and return the result."""
    async with connect(data.bridge(**settings)) as client:
        return await client.call("record_speed", arguments)


async def refused_record(data: Data, arguments: dict[str, Any], **settings: Any) -> Any:
    """Try to record a run as a client of the contract does, and return the error."""
    async with connect(data.bridge(**settings), revision=CONTRACT) as client:
        return await client.error("tools/call", {"name": "record_speed", "arguments": arguments})
