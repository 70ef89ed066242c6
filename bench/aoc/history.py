"""History: a page of single runs over 10,000 to 1,000,000 records, in files and in PostgreSQL.

    python -m bench.aoc.history [--write]

Beside each stands the bare read: of files, decoding all of them into structs of four fields; of the database,
`select` of all rows, fetched. Times of files are CPU time of the process, since nothing else takes part;
those of the database are on the clock. Each is the best of 15 calls, since other work can only add to it, but
for the bare read and the first call. In the database a page reads what it skips, unless it follows one that
the same process has answered.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.machine import machine
from bench.table import draw
from bridgehead.aoc.commands import main as aoc
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import Workspace, open_workspace
from bridgehead.commands import db
from bridgehead.runtime.stores import postgres
from tests.support.postgres_server import running

DAYS, MODELS, LIMIT, ROUNDS = 25, 12, 20, 15
SIZES = (10_000, 100_000, 1_000_000)
LARGE = {"shared_buffers": "512MB", "autovacuum": "on"}
BARE = """
import sys, time, msgspec
class Run(msgspec.Struct, gc=False):
    llm: str
    phase: int
    timestamp: str
    time: int = msgspec.field(name="speedMs")
class Day(msgspec.Struct):
    day: int
    entries: list[Run]
decode = msgspec.json.Decoder(Day).decode
begin = time.process_time()
kept = []
for day in range(1, 26):
    with open(f"{sys.argv[1]}/speeds/day{day:02}.json", "rb") as file:
        kept.append(decode(file.read()))
print(time.process_time() - begin)
"""
DEPTH = 5_000
PAGES = {
    "the newest 20": (Filters(), 0),
    "of one model": (Filters(llm="model-3"), 0),
    "of one day and phase": (Filters(day=7, phase=2), 0),
    "20 after 5,000": (Filters(), DEPTH),
    "the next 20": (Filters(), DEPTH + LIMIT),
}


def main() -> int:
    """Measure all sizes, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.aoc.history", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write bench/aoc/HISTORY.md")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the largest number of records")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= options.most]
    columns = [column for size in sizes for column in measured(size)]
    rows = [["ms", *(title for title, _ in columns)]]
    rows += [[what, *(_round(found[what]) for _, found in columns)] for what in columns[0][1]]
    text = f"# Pages of the history\n\n{draw(rows)}\n\n{__doc__.strip()}\n\n- {machine()}\n"
    print(text)
    if options.write:
        Path(__file__).with_name("HISTORY.md").write_text(text, encoding="utf-8")
    return 0


def _round(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def measured(size: int) -> list[tuple[str, dict[str, float]]]:
    """Measure one size; return the title and the times of each kind of store, in ms."""
    print(f"measuring: {size:,} records", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as made, running(**LARGE) as server:
        folder = Path(made)
        write(folder, size)
        environment = {"AOC_DATA_DIR": made, "BRIDGEHEAD_STATE_DIR": made}
        done = subprocess.run(
            [sys.executable, "-c", BARE, made], capture_output=True, text=True, check=True, timeout=600
        )
        bare = float(done.stdout) * 1000
        files = asyncio.run(_pages(open_workspace(AocSettings(environment)), size, time.process_time))
        in_database = {**environment, "BRIDGEHEAD_DATABASE_URL": server.url}
        write(folder, size)
        assert db.main(["migrate"], in_database) == aoc(["import"], in_database) == 0
        server.execute("vacuum analyze aoc_records")
        rows = asyncio.run(_in_database(in_database, size))
    return [
        (f"files, {size:,}", {"bare read": bare, **files}),
        (f"PostgreSQL, {size:,}", rows),
    ]


async def _in_database(environment: dict[str, str], size: int) -> dict[str, float]:
    database = await postgres.acquire(environment["BRIDGEHEAD_DATABASE_URL"])
    connection = await postgres.load_driver().connect(environment["BRIDGEHEAD_DATABASE_URL"])
    begin = time.perf_counter()
    await connection.fetch("select day, llm, phase, moment, time from aoc_records")
    bare = (time.perf_counter() - begin) * 1000
    await connection.close()
    workspace = open_workspace(AocSettings(environment), database=database)
    found = await _pages(workspace, size, time.perf_counter)
    await postgres.release(database)
    return {"bare read": bare, **found}


async def _pages(workspace: Workspace, size: int, clock: Callable[[], float]) -> dict[str, float]:
    times: dict[str, float] = {}

    async def call(filters: Filters, older: int | None, total: int | None = None) -> float:
        begin = clock()
        view = await workspace.history(filters, LIMIT, older)
        spent = clock() - begin
        assert len(view.page.runs) == LIMIT
        assert total in {None, view.page.total}, view.page.total
        return spent * 1000

    times["first call"] = await call(Filters(), None, size)
    for what, (filters, newer) in PAGES.items():
        older = size - newer if newer else None
        await call(filters, older)
        times[what] = min([await call(filters, older) for _ in range(ROUNDS)])
    after = []
    for number in range(ROUNDS):
        await workspace.recorder.record(NewRun(5, 1, "model-3", number))
        after.append(await call(Filters(), None, size + number + 1))
    times["the newest 20, after a record"] = min(after)
    await workspace.close()
    return times


def write(folder: Path, size: int, models: int = MODELS) -> None:
    """Write a year's records, in the order of time over all days."""
    (folder / "speeds").mkdir(exist_ok=True)
    for day in range(1, DAYS + 1):
        lines = []
        for number in range(size // DAYS - 1, -1, -1):
            second = number * DAYS + day
            moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_760_000_000 + second))
            lines.append(
                f'    {{"llm": "model-{second % models}", "phase": {number % 2 + 1}, '
                f'"speedMs": {second * 7919 % 90_000}, "timestamp": "{moment}.{number % 1000:03}Z"}}'
            )
        text = f'{{\n  "day": {day},\n  "entries": [\n' + ",\n".join(lines) + "\n  ]\n}\n"
        (folder / "speeds" / f"day{day:02}.json").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
