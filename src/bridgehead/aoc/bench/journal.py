"""Journal: every run of a benchmark, one line each, on the disk before records or reports are made from it.

A benchmark that was stopped is resumed by running it again: finished runs are not repeated. Lines are sealed
like records: the times of one that was written or edited by another program are only claimed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridgehead.runtime import durable

from ..files.entries import CLAIMED, Grade
from ..files.seals import Seals

MAX_RETRIES = 2
"""How often a broken run is tried again: else an agent could break off what it does not like for ever."""


class PhaseResult(Struct, frozen=True):
    """The outcome of one phase."""

    phase: int
    outcome: Literal["solved", "failed", "not started"]
    milliseconds: int | None
    """From handing out the puzzle to the correct answer, or to the end of the run."""
    wrong: int
    grade: Grade


class RunResult(Struct, frozen=True, omit_defaults=True):
    """One run of one agent on one day."""

    id: str
    agent: str
    version: str | None
    model: str | None
    language: str
    day: int
    repeat: int
    prompt_hash: str
    started: str
    seconds: float
    is_isolated: bool
    phases: list[PhaseResult]
    tokens: int | None
    cost_usd: float | None
    status: int
    problem: str
    """Which limit the agent broke; empty if none."""
    transcript: str
    host: str
    seal: str | None = None
    """Proves the grades in a file; nothing outside of `RunJournal` sees it."""
    times_broken: int = 0
    """How often this run was broken so far; counted from the journal, not written to it."""

    @property
    def tried(self) -> list[PhaseResult]:
        """The phases that count: all that began, and the first unless the run is broken.

        An agent that never starts has failed phase 1; otherwise it could choose its days. Phase 2 is only
        handed out after phase 1 is solved, so it does not count.
        """
        return [
            phase
            for phase in self.phases
            if phase.outcome != "not started" or (phase.phase == 1 and not self.is_broken)
        ]

    @property
    def is_given_up(self) -> bool:
        """Whether the run was broken too often to be tried again."""
        return self.is_broken and self.times_broken > MAX_RETRIES

    @property
    def is_broken(self) -> bool:
        """Whether the agent failed before it began, as without an API key. Such a run does not count."""
        has_begun = any(phase.outcome != "not started" for phase in self.phases)
        return self.status != 0 and not self.problem and not has_begun


def run_id(agent: str, day: int, repeat: int, setup: str) -> str:
    """Derive the id of a run from its content, so that it is the same when the benchmark is resumed."""
    return sha256(f"{agent}\n{day}\n{repeat}\n{setup}".encode()).hexdigest()[:12]


class RunJournal:
    """The file `journal.jsonl` in the folder of a benchmark."""

    def __init__(self, folder: Path, seals: Seals) -> None:
        self._path = folder / "journal.jsonl"
        self._seals = seals

    def append(self, result: RunResult) -> None:
        """Add a run; it is on the disk when this returns."""
        with self._path.open("ab+") as file:
            # A killed process may have left half a line: start a new one.
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            sealed = replace(result, seal=self._seals.sign(result.day, _encode(result)))
            file.write(msgspec.json.encode(sealed) + b"\n")
            file.flush()
            durable.flush(file.fileno())
        durable.flush_folder(self._path.parent)

    def results(self) -> dict[str, RunResult]:
        """Return the first run of each id that is not broken, or the last broken one with its count."""
        broken: Counter[str] = Counter()
        try:
            lines: Iterable[bytes] = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        decode = msgspec.json.Decoder(RunResult).decode
        results: dict[str, RunResult] = {}
        for line in lines:
            try:
                result = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the half line of a process that was killed
            seal, result = result.seal, replace(result, seal=None)
            if not self._seals.fits(seal, result.day, _encode(result)):
                result = replace(result, phases=[replace(phase, grade=CLAIMED) for phase in result.phases])
            broken[result.id] += result.is_broken
            if result.id not in results or results[result.id].is_broken:
                results[result.id] = result
        return {name: replace(result, times_broken=broken[name]) for name, result in results.items()}


def _encode(result: RunResult) -> str:
    return msgspec.json.encode(result).decode()
