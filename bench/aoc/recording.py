"""Recording: records a second, each on the disk before it counts, beside rewriting the file for each record.

Ours is the real server over stdio with 1 or 64 calls on their way. The other way is called without any server
in between, which favours it: for each record it takes the lock, reads the file, puts the record in front,
writes all of it beside, flushes it, renames it and flushes the folder. Both begin with the same file.
"""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import msgspec
from filelock import FileLock

from bench.aoc.start import OURS
from bench.message import INITIALIZE, INITIALIZED, WrongAnswer
from bench.process import NotRunning, Process
from bridgehead.runtime import durable

ALREADY_THERE = 1000
LIMIT = 120.0


def measured(folder: Path, callers: int, rounds: int, records: tuple[int, int]) -> tuple[float, float]:
    """Record with so many callers, in turns; return the medians in records a second, ours first.

    `records` are how many ours and the other way make in a round.
    """
    ours: list[float] = []
    other: list[float] = []
    for number in range(rounds):
        ours.append(_ours(_prepared(folder / f"ours-{callers}-{number}"), callers, records[0]))
        other.append(_other(_prepared(folder / f"other-{callers}-{number}"), callers, records[1]))
    return median(ours), median(other)


def _prepared(folder: Path) -> Path:
    entries = [
        {"llm": "before", "phase": 1, "speedMs": number, "timestamp": "2025-12-01T10:30:00.000Z"}
        for number in range(ALREADY_THERE)
    ]
    (folder / "speeds").mkdir(parents=True)
    (folder / "speeds" / "day01.json").write_text(json.dumps({"day": 1, "entries": entries}))
    return folder


def _check(folder: Path, records: int) -> None:
    """Make sure that every record is there once."""
    entries = json.loads((folder / "speeds" / "day01.json").read_bytes())["entries"]
    made = sorted(entry["speedMs"] for entry in entries if entry["llm"] == "bench")
    if made != list(range(records)) or len(entries) != records + ALREADY_THERE:
        raise WrongAnswer(f"{len(entries)} records are there")


def _ours(folder: Path, callers: int, records: int) -> float:
    os.environ["AOC_DATA_DIR"] = str(folder)
    with Process((sys.executable, "-c", OURS)) as process, process.within(LIMIT):
        os.write(process.stdin, INITIALIZE + b"\n" + INITIALIZED + b"\n")
        answers(process)
        begin = time.perf_counter()
        sent = answered = 0
        while answered < records:
            wanted = min(records, answered + callers)
            if sent < wanted:
                os.write(process.stdin, b"".join(_call(number) for number in range(sent, wanted)))
                sent = wanted
            answered += answers(process)
        spent = time.perf_counter() - begin
        process.finish(LIMIT)
    _check(folder, records)
    return records / spent


def _call(number: int) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"record_speed","arguments":'
        b'{"day":1,"phase":1,"llm_name":"bench","speed_ms":%d}}}\n' % (number + 10, number)
    )


def answers(process: Process) -> int:
    """Read whole lines, at least one; return how many."""
    data = b""
    while not data.endswith(b"\n"):
        chunk = os.read(process.stdout, 1 << 20)
        if not chunk:
            raise NotRunning(process.complaint())
        data += chunk
    if b'"error"' in data or b'"isError":true' in data:
        raise WrongAnswer(f"a record was refused: {data[:300]!r}")
    return data.count(b"\n")


def _other(folder: Path, callers: int, records: int) -> float:
    path = folder / "speeds" / "day01.json"
    one_at_a_time = threading.Lock()  # the file lock alone would let threads poll for it

    def record(number: int) -> None:
        entry = {"llm": "bench", "phase": 1, "speedMs": number, "timestamp": "2025-12-01T10:30:00.000Z"}
        with one_at_a_time, FileLock(path.with_suffix(".lock")):
            document = msgspec.json.decode(path.read_bytes())
            document["entries"].insert(0, entry)
            durable.replace(path, msgspec.json.encode(document))

    with ThreadPoolExecutor(callers) as pool:
        begin = time.perf_counter()
        list(pool.map(record, range(records)))
        spent = time.perf_counter() - begin
    _check(folder, records)
    return records / spent
