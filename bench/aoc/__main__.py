"""The command `python -m bench.aoc`: measure the aoc bridge, play the kills, print and write one table."""

import argparse
import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.aoc import boards, kills, large, recording, start
from bench.aoc.row import Row, table
from bench.machine import machine

HERE = Path(__file__).parent
PROCESSES, RECORDS, ROUNDS, KILLS = 8, 200, 20, 3


def main() -> int:
    """Measure and report; 1 where a target was missed."""
    options = _options()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a killed server's pipe is no news
    with tempfile.TemporaryDirectory(dir=options.disk) as folder:
        rows = list(_rows(Path(folder), quick=options.quick))
    text = "\n".join(_report(rows))
    print(text)
    if not options.quick:
        (HERE / "RESULTS.md").write_text(text + "\n", encoding="utf-8")
    return 0 if all(row.is_reached for row in rows) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.aoc", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short rounds; writes no file")
    parser.add_argument("--disk", metavar="FOLDER", help="where to write (default: the temporary folder)")
    return parser.parse_args()


def _rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    """Measure one thing after the other."""
    rounds = 2 if quick else 5
    ours, peer = start.measured(_made(folder / "start"), rounds * 2)
    yield Row("spawn to first fetch_instruction", "official Python SDK", ours, peer, "ms", "≤", 0.2)
    for callers, made in ((1, (300, 300)), (64, (6400, 300))):
        ours, peer = recording.measured(_made(folder / f"callers-{callers}"), callers, rounds, made)
        bound = 10.0 if callers > 1 else None
        yield Row(f"records, {callers} at once", "lock, rewrite, fsync, rename", ours, peer, "/s", "≥", bound)
    ours, peer, first_ms = large.measured(_made(folder / "large"), rounds)
    yield Row("records, 300,000 there", "the same, none there", ours, peer, "/s", "≥", 0.5)
    yield Row("the first of them", "one second", first_ms, 1000.0, "ms", "≤", None)
    first, again, called, decoding = boards.measured(_made(folder / "ranking"), rounds * 3)
    yield Row("leaderboard of 300,000 runs, new process", "one second", first, 1000.0, "ms", "≤", 1.0)
    yield Row("the same", "only decoding the files", first, decoding, "ms", "≤", None)
    yield Row(
        "leaderboard, first call of a server", "only decoding the files", called, decoding, "ms", "≤", None
    )
    yield Row("leaderboard, nothing changed", "only decoding the files", again, decoding, "ms", "≤", 0.05)
    yield _killed(folder, 2 if quick else ROUNDS)


def _made(folder: Path) -> Path:
    print(f"measuring: {folder.name}", file=sys.stderr, flush=True)
    folder.mkdir()
    return folder


def _killed(folder: Path, rounds: int) -> Row:
    """Play the rounds with kills; ours are the answered records that are there once, of all answered ones."""
    answered = wrong = killed = looks = 0
    for number in range(rounds):
        place = _made(folder / f"kills-{number}")
        outcome = asyncio.run(
            kills.play(place, processes=PROCESSES, records=RECORDS, kills=KILLS, seed=number)
        )
        for problem in outcome.problems:
            print(problem, file=sys.stderr)
        answered += len(outcome.answered)
        wrong += len(outcome.problems)
        killed += outcome.kills
        looks += outcome.looks
    what = f"records kept: {rounds} rounds, {killed} kills, {looks:,} looks"
    return Row(what, "records answered", answered - wrong, answered, "", "≥", 1.0)


def _report(rows: list[Row]) -> Iterator[str]:
    yield "# The aoc bridge, measured\n"
    yield table(rows) + "\n"
    yield f"- command: `python -m bench.aoc`, {datetime.now(UTC):%Y-%m-%d}"
    yield f"- {machine()}"
    yield "- each figure is the median of interleaved rounds; ours is the real server over stdio"
    yield (
        "- records: both begin with 1,000 records in the day's file. The other way is called without a "
        "server in between: for each record it locks, reads, decodes, encodes, writes beside, flushes, "
        "renames and flushes the folder. With 64 callers ours has 64 calls on their way, the other 64 "
        "threads. Ours then writes the records that wait together, and the other each for itself: that is "
        "the design, so the row with 1 caller is the one that compares like with like"
    )
    yield (
        "- leaderboard: 25 days of 12,000 records. Here both are new processes that time their work; the "
        "other reads the files and decodes them with msgspec into structs of name, phase and time, no more. "
        "Where nothing changed ours answers from memory, which the other does not try to"
    )
    yield (
        f"- kills: {PROCESSES} server processes record {RECORDS} times each on one day; in each round "
        f"{KILLS} are killed with SIGKILL at random and started again. Every answered record has to be there "
        "exactly once, any other at most once, and every file that a reader looks at has to be whole"
    )


if __name__ == "__main__":
    sys.exit(main())
