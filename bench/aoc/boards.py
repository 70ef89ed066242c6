"""Boards: the leaderboard over 25 days of 12,000 records each, beside only decoding those files.

Both are new processes that time their work themselves, once they have started. Ours ranks all records, and
then again. The yardstick reads the files and decodes each into structs with just the fields that a ranking
needs. Beside that, the same as a client has it: the first `speed_leaderboard` call of a new server, from
writing the request to having read the answer.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.aoc import start
from bench.aoc.recording import answers
from bench.message import INITIALIZE, INITIALIZED
from bench.process import Process

DAYS = range(1, 26)
RECORDS = 12_000
MODELS = 12
LIMIT = 60.0
STARTED_SECONDS = 1.5
"""When a server has done what it does after its first answers."""
CALL = (
    b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"speed_leaderboard","arguments":{}}}\n'
)

OURS = """
import sys, time
from bridgehead.aoc.files import attempts, names, records
from bridgehead.aoc.workspace import open_workspace
from bridgehead.aoc.ranking import standings
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.settings import AocSettings
workspace = open_workspace(AocSettings({"AOC_DATA_DIR": sys.argv[1]}))
begin = time.perf_counter()
workspace.board_now(Filters())
first = time.perf_counter()
board = workspace.board_now(Filters())
print(first - begin, time.perf_counter() - first, len(board.rows), sum(row.n for row in board.rows))
"""
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


def measured(folder: Path, rounds: int) -> tuple[float, float, float, float]:
    """Rank in turns with decoding; return medians in ms: ours first, again, as a call, and only decoding."""
    _write(folder)
    first, again, called, decoding = [], [], [], []
    for _ in range(rounds):
        decoding += _run(YARDSTICK, folder)
        new, warm, models, runs = _run(OURS, folder)
        assert (models, runs) == (MODELS, RECORDS * len(DAYS))
        first.append(new)
        again.append(warm)
        called.append(_first_call(folder))
    first_ms, again_ms, called_ms, decoding_ms = (
        median(one) * 1000 for one in (first, again, called, decoding)
    )
    return first_ms, again_ms, called_ms, decoding_ms


def _first_call(folder: Path) -> float:
    os.environ["AOC_DATA_DIR"] = str(folder)
    with Process((sys.executable, "-c", start.OURS)) as process, process.within(LIMIT):
        os.write(process.stdin, INITIALIZE + b"\n" + INITIALIZED + b"\n")
        answers(process)
        time.sleep(STARTED_SECONDS)
        begin = time.perf_counter()
        os.write(process.stdin, CALL)
        data = b""
        while not data.endswith(b"\n"):
            data += os.read(process.stdout, 1 << 20)
        spent = time.perf_counter() - begin
    rows = json.loads(data)["result"]["structuredContent"]["rows"]
    assert sum(row["n"] for row in rows) == RECORDS * len(DAYS)
    return spent


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


def _run(program: str, folder: Path) -> list[float]:
    """Run a program in a new process and return the numbers that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    return [float(number) for number in done.stdout.split()]
