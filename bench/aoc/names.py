"""Names: what records, boards and histories cost when clients invent thousands of model names.

    python -m bench.aoc.names [--write]

Each line is a folder with so many records and names on one day or on 25; times are CPU time of the process,
medians. "record" is one more record; the others are one more record and the board or history after it.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.machine import machine
from bench.table import draw
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import open_workspace

CASES = [
    (12, 12, 1),
    (3_160, 12, 1),
    (3_160, 3_160, 1),
    (8_000, 12, 1),
    (8_000, 8_000, 1),
    (79_000, 12, 25),
    (79_000, 3_160, 25),
]
ROUNDS = 60


def main() -> int:
    """Measure all cases, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.aoc.names", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write bench/aoc/NAMES.md")
    options = parser.parse_args()
    rows = [["records", "names", "days", "record", "and board", "and history", "board again"]]
    for case in CASES:
        figures = asyncio.run(measured(*case))
        rows.append([*(f"{number:,}" for number in case), *(f"{one:.2f} ms" for one in figures)])
        print(*rows[-1], file=sys.stderr, flush=True)
    text = f"# Many names\n\n{draw(rows)}\n\n{__doc__.strip()}\n\n- {machine()}\n"
    print(text)
    if options.write:
        Path(__file__).with_name("NAMES.md").write_text(text, encoding="utf-8")
    return 0


async def measured(records: int, names: int, days: int) -> list[float]:
    """Fill a folder, and return the times in ms."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = open_workspace(AocSettings({"AOC_DATA_DIR": folder, "BRIDGEHEAD_STATE_DIR": folder}))

        async def record(number: int) -> None:
            run = NewRun(number % days + 1, 1, f"model-{number % names}", 100 + number * 7919 % 5000)
            await workspace.recorder.record(run)

        async def record_and(ask: Callable[[], Awaitable[object]], number: int) -> None:
            await record(number)
            await ask()

        async def median(work: Callable[[int], Awaitable[object]], rounds: int) -> float:
            times = []
            for number in range(rounds + 1):
                begin = time.process_time()
                await work(number)
                times.append(time.process_time() - begin)
            return statistics.median(times[1:]) * 1000  # the first one reads what there is

        def board() -> Awaitable[object]:
            return workspace.board(Filters())

        def history() -> Awaitable[object]:
            return workspace.history(Filters(), 20, None)

        await asyncio.gather(*(record(number) for number in range(records)))
        figures = [
            await median(record, ROUNDS),
            await median(lambda number: record_and(board, number), ROUNDS // 5),
            await median(lambda number: record_and(history, number), ROUNDS // 5),
            await median(lambda _: board(), ROUNDS),
        ]
        await workspace.close()
    return figures


if __name__ == "__main__":
    sys.exit(main())
