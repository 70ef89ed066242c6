"""The command `python -m bench.bitburner`: measure, print one table, and write it to RESULTS.md."""

import argparse
import asyncio
import gc
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from websockets.version import version as websockets_version

from bench.bitburner import syncing, writes
from bench.bitburner.exchanges import READS, Run, bare, ours, seconds
from bench.bitburner.far_side import FILES, TOTAL_BYTES
from bench.process import Process
from bench.stdio import initialize

HERE = Path(__file__).parent
ROUNDS = 11
COMMAND = "python -m bench.bitburner"
WRITES = """## What a write costs

`python -m bench.bitburner.writes`: the fastest tenth of 200, in turns with a bare `pushFile`. The aim is 3.
A `write_file` is two exchanges (read, write), for a script three (its RAM). While the game answers, a thread
keeps the new text: about 0.1 ms for its file and the index. Before a text of the player is replaced, that is
kept, with two flushes of the disk.
"""


@dataclass(frozen=True)
class Row:
    """One measure: ours beside what it is held against."""

    title: str
    ours: float
    other: float
    against: str
    unit: str
    wanted: str
    bound: float

    @property
    def ratio(self) -> float:
        return self.ours / self.other

    @property
    def is_reached(self) -> bool:
        return self.ratio <= self.bound if self.wanted == "≤" else self.ratio >= self.bound

    def cells(self) -> list[str]:
        verdict = "reached" if self.is_reached else "**not reached**"
        return [
            self.title,
            f"{self.ours:,.0f} {self.unit}",
            f"{self.other:,.0f} {self.unit} ({self.against})",
            f"{self.ratio:.2f}",
            f"{self.wanted} {self.bound:g}, {verdict}",
            f"`{COMMAND}`",
        ]


async def exchanges(rounds: int) -> list[Row]:
    """Measure both ways in turns, after one turn each to warm up."""
    async with bare() as floor, ours() as bridge:
        everything = await _in_turns(rounds, floor.get_all, bridge.get_all)
        reads = await _in_turns(rounds, floor.read_many, bridge.read_many)
    whole = f"get_all_files, {FILES:,} files, {TOTAL_BYTES // 1_000_000} MB"
    return [
        Row(whole, everything[1] * 1000, everything[0] * 1000, "bare exchange and decoding", "ms", "≤", 1.5),
        Row(
            f"{READS:,} pipelined read_file",
            READS / reads[1],
            READS / reads[0],
            "bare exchange",
            "/s",
            "≥",
            0.5,
        ),
    ]


async def _in_turns(rounds: int, *runs: Run) -> list[float]:
    taken: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds + 1):
        for run, times in zip(runs, taken, strict=True):
            gc.collect()
            once = await seconds(run)
            if turn:
                times.append(once)
    return [median(times) for times in taken]


async def synced(rounds: int) -> list[Row]:
    """Measure what a player waits for, beside the limits that were set."""
    both, edit = await syncing.measure(rounds)
    title = f"sync, {syncing.FILES} files of 3 KB in each direction"
    return [
        Row(title, both, 1000.0, "limit", "ms", "≤", 1.0),
        Row("sync, an edit reaches the game", edit, 200.0, "limit", "ms", "≤", 1.0),
    ]


def cold_start(rounds: int) -> Row:
    """Measure from the start of the process to the answer to `initialize`, in turns."""
    with tempfile.TemporaryDirectory() as state:
        os.environ |= {"BITBURNER_LISTEN": "0", "BRIDGEHEAD_STATE_DIR": state}
        bridge = (sys.executable, "-m", "bridgehead", "bitburner")
        official = (sys.executable, str(HERE / "sdk_server.py"))
        taken: dict[tuple[str, ...], list[float]] = {bridge: [], official: []}
        for turn in range(rounds + 1):
            for command, times in taken.items():
                with Process(command) as process:
                    once = initialize(process)
                if turn:
                    times.append(once * 1000)
    return Row(
        "cold start, to the answer to initialize",
        median(taken[bridge]),
        median(taken[official]),
        "the same tools on the official Python SDK",
        "ms",
        "≤",
        0.2,
    )


def report(rows: list[Row], rounds: int) -> str:
    """Put the table and the facts together."""
    table = [["measure", "ours", "bare", "ratio", "wanted", "command"], *(row.cells() for row in rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in table]
    lines.insert(1, "| --- | ---: | ---: | ---: | --- | --- |")
    how = (
        f"Medians of {rounds} turns, ours and the other one after the other in the same run. The first two "
        "rows count from the call to the handler's result; the far side is the same process for both."
    )
    made_with = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, websockets {websockets_version}, "
        f"{platform.system()} {platform.machine()}."
    )
    return "\n".join(["# The bitburner bridge, measured", "", how, "", *lines, "", made_with, ""])


def main() -> int:
    """Measure and report; a quick run writes no file."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few turns; writes no file")
    quick = parser.parse_args().quick
    rounds = 3 if quick else ROUNDS
    rows = [*asyncio.run(exchanges(rounds)), cold_start(rounds), *asyncio.run(synced(rounds))]
    text = report(rows, rounds)
    if not quick:
        text = f"{text}\n{WRITES}\n{writes.make_table()}\n"
    print(text)
    if not quick:
        (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
    return 0 if all(row.is_reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
