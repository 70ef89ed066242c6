"""Ranking: the leaderboard over 25 days of 10,000 records each, beside only decoding those files.

Ours is the first `speed_leaderboard` call of a new server process, from writing the request to having read
the answer, and the same call again. The yardstick is a new process that reads the files and decodes each into
structs with just the fields that a ranking needs; only the reading and decoding is timed.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.aoc.recording import answers
from bench.aoc.start import OURS
from bench.message import INITIALIZE, INITIALIZED
from bench.process import Process

DAYS = range(1, 26)
RECORDS = 10_000
MODELS = 12
LIMIT = 60.0
PING = b'{"jsonrpc":"2.0","id":4,"method":"ping"}\n'
CALL = (
    b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"speed_leaderboard","arguments":{}}}\n'
)

YARDSTICK = """
import sys, time, msgspec
class Run(msgspec.Struct, gc=False):
    llm: str
    phase: int
    time: int = msgspec.field(name="speedMs")
class Day(msgspec.Struct):
    day: int
    entries: list[Run]
decode = msgspec.json.Decoder(Day).decode
begin = time.perf_counter()
for day in range(1, 26):
    with open(f"{sys.argv[1]}/speeds/day{day:02}.json", "rb") as file:
        decode(file.read())
print(time.perf_counter() - begin)
"""


def measured(folder: Path, rounds: int) -> tuple[float, float, float]:
    """Rank in turns with decoding; return medians in milliseconds: ours first, ours again, only decoding."""
    _write(folder)
    first, again, decoding = [], [], []
    for _ in range(rounds):
        decoding.append(_only_decoding(folder))
        new, warm = _ours(folder)
        first.append(new)
        again.append(warm)
    return median(first) * 1000, median(again) * 1000, median(decoding) * 1000


def _write(folder: Path) -> None:
    draw = random.Random(2025)  # noqa: S311 - times to rank, not secrets
    (folder / "speeds").mkdir()
    for day in DAYS:
        lines = [
            f'    {{"llm": "model-{draw.randrange(MODELS)}", "phase": {draw.randint(1, 2)}, '
            f'"speedMs": {int(draw.lognormvariate(7, 1))}, "timestamp": "2025-12-{day:02}T10:30:00.000Z"}}'
            for _ in range(RECORDS)
        ]
        text = f'{{\n  "day": {day},\n  "entries": [\n' + ",\n".join(lines) + "\n  ]\n}\n"
        (folder / "speeds" / f"day{day:02}.json").write_text(text)


def _only_decoding(folder: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", YARDSTICK, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    return float(done.stdout)


def _ours(folder: Path) -> tuple[float, float]:
    os.environ["AOC_DATA_DIR"] = str(folder)
    with Process((sys.executable, "-c", OURS)) as process, process.within(LIMIT):
        os.write(process.stdin, INITIALIZE + b"\n" + INITIALIZED + b"\n")
        answers(process)
        os.write(process.stdin, PING)  # so that the start is over, as it is in the yardstick
        answers(process)
        new = _call(process)
        return new, median(_call(process) for _ in range(5))


def _call(process: Process) -> float:
    begin = time.perf_counter()
    os.write(process.stdin, CALL)
    data = b""
    while not data.endswith(b"\n"):
        data += os.read(process.stdout, 1 << 20)
    spent = time.perf_counter() - begin
    rows = json.loads(data)["result"]["structuredContent"]["rows"]
    assert len(rows) == MODELS
    assert sum(row["n"] for row in rows) == RECORDS * len(DAYS)
    return spent
