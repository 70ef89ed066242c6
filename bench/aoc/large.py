"""Large: records a second on a day that has 300,000 already, beside a day that has none.

Both are the real server over stdio with one call on its way, after one record that loads what the first one
needs. The large day's file is checked at the end: valid JSON with every record in it once.
"""

import json
import os
import sys
import time
from pathlib import Path
from statistics import median

from bench.aoc.recording import answers
from bench.aoc.start import OURS
from bench.message import INITIALIZE, INITIALIZED, WrongAnswer
from bench.process import Process

ALREADY_THERE = 300_000
RECORDS = 300
LIMIT = 300.0


def measured(folder: Path, rounds: int) -> tuple[float, float, float]:
    """Record on both in turns; return the medians in records a second, and the first record's time in ms."""
    large: list[float] = []
    empty: list[float] = []
    first: list[float] = []
    for number in range(rounds):
        rate, first_ms = _recorded(_prepared(folder / f"large-{number}", ALREADY_THERE), ALREADY_THERE)
        large.append(rate)
        first.append(first_ms)
        empty.append(_recorded(_prepared(folder / f"empty-{number}", 0), 0)[0])
    return median(large), median(empty), median(first)


def _prepared(folder: Path, count: int) -> Path:
    (folder / "speeds").mkdir(parents=True)
    if count:
        lines = (
            f'    {{"llm": "model-{number % 12}", "phase": {number % 2 + 1}, "speedMs": {number}, '
            f'"timestamp": "2025-12-01T10:30:00.000Z"}}'
            for number in range(count)
        )
        text = '{\n  "day": 1,\n  "entries": [\n' + ",\n".join(lines) + "\n  ]\n}\n"
        (folder / "speeds" / "day01.json").write_text(text)
    return folder


def _recorded(folder: Path, before: int) -> tuple[float, float]:
    os.environ["AOC_DATA_DIR"] = str(folder)
    with Process((sys.executable, "-c", OURS)) as process, process.within(LIMIT):
        os.write(process.stdin, INITIALIZE + b"\n" + INITIALIZED + b"\n")
        answers(process)
        begin = time.perf_counter()
        _record(process, 0)
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        for number in range(1, RECORDS + 1):
            _record(process, number)
        spent = time.perf_counter() - begin
        process.finish(LIMIT)
    entries = json.loads((folder / "speeds" / "day01.json").read_bytes())["entries"]
    made = [entry["speedMs"] for entry in entries if entry["llm"] == "bench"]
    if made != list(range(RECORDS, -1, -1)) or len(entries) != before + RECORDS + 1:
        raise WrongAnswer(f"{len(entries)} records are there, {len(made)} of them ours")
    return RECORDS / spent, first * 1000


def _record(process: Process, number: int) -> None:
    os.write(
        process.stdin,
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"record_speed","arguments":'
        b'{"day":1,"phase":1,"llm_name":"bench","speed_ms":%d}}}\n' % (number, number),
    )
    answers(process)
