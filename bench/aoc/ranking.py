"""Ranking: the leaderboard over 25 days of 10,000 records each, beside only decoding those files.

Both are new processes that time their work themselves, once they have started. Ours ranks all records, and
then again. The yardstick reads the files and decodes each into structs with just the fields that a ranking
needs.
"""

import random
import subprocess
import sys
from pathlib import Path
from statistics import median

DAYS = range(1, 26)
RECORDS = 10_000
MODELS = 12
LIMIT = 60.0

OURS = """
import sys, time
from bridgehead.aoc import aliases, records
from bridgehead.aoc.bridge import open_event
from bridgehead.aoc.leaderboard import Filters
from bridgehead.aoc.settings import AocSettings
event = open_event(AocSettings({"AOC_DATA_DIR": sys.argv[1]}))
begin = time.perf_counter()
event.board_now(Filters())
first = time.perf_counter()
board = event.board_now(Filters())
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


def measured(folder: Path, rounds: int) -> tuple[float, float, float]:
    """Rank in turns with decoding; return medians in milliseconds: ours first, ours again, only decoding."""
    _write(folder)
    first, again, decoding = [], [], []
    for _ in range(rounds):
        decoding += _run(YARDSTICK, folder)
        new, warm, models, runs = _run(OURS, folder)
        assert (models, runs) == (MODELS, RECORDS * len(DAYS))
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
