"""Chaos: `python -m tests.chaos [--seed N] [--short] [--write]`. Exits with 1 where a rule was broken.

Clients and faults follow from the seed; how they meet in time does not. `--write` puts the figures into
tests/chaos/RESULTS.md.
"""

import argparse
import asyncio
import os
import secrets
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec import Struct

from tests.chaos.checker import check
from tests.chaos.clients import Client
from tests.chaos.cluster import Cluster, running_cluster
from tests.chaos.faults import FAULTS, SHORT
from tests.chaos.history import History, Operation
from tests.support.small_disk import mount_small_disk
from tests.support.waiting import PATIENCE

CLIENTS = 20
CALM_OPERATIONS = 60
"""Operations between two faults."""
FAULTY_OPERATIONS = 120
"""Operations that begin while a fault holds; in some faults few end."""
FAULT_SECONDS = 8.0
"""A fault does not hold longer, also if clients cannot do so much."""
PAGE = Path(__file__).parent / "RESULTS.md"


class Row(Struct):
    """The figures of one fault."""

    fault: str
    counts: Counter[str]
    seconds: float
    """From the end of the fault until each kind of operation was acknowledged again."""


async def run(
    folder: Path, seed: int, faults: list[str], stack: ExitStack
) -> tuple[list[Row], list[str], str]:
    """Run clients through the faults; return the figures, the rules that were broken, and the sums."""
    disk = stack.enter_context(mount_small_disk("8m")) if "full state disk" in faults else None
    history, rows = History(), []
    async with running_cluster(folder, seed, CLIENTS, disk) as cluster:
        stop = asyncio.Event()
        clients = [Client(name, cluster, history, seed) for name in cluster.tokens]
        working = [asyncio.create_task(client.run(stop)) for client in clients]
        try:
            for fault in faults:
                rows.append(await _meet(cluster, history, fault, working))
                row = rows[-1]
                print(f"{fault:26} {dict(row.counts)}, works again after {row.seconds:.1f} s", flush=True)
        finally:
            stop.set()
            await asyncio.gather(*working)
        # Told to end, the replicas book how their last sends ended.
        for replica in cluster.replicas:
            await replica.end()
        books = await cluster.read_books()
    acknowledged = sum(operation.outcome == "acknowledged" for operation in history.of("record"))
    sums = (
        f"{len(history.operations):,} operations; {acknowledged:,} records acknowledged, "
        f"{len(books.records):,} found; ${sum(books.charges.values()):.6f} charged, "
        f"${books.committed_usd:.6f} committed of ${books.budget_usd:g}; {len(history.of('task')):,} tasks"
    )
    return rows, check(history, books), sums


async def _meet(cluster: Cluster, history: History, fault: str, working: list["asyncio.Task[None]"]) -> Row:
    await _wait_for(history, len(history.operations) + CALM_OPERATIONS, PATIENCE)
    first = len(history.operations)
    async with FAULTS[fault](cluster):
        await _wait_for(history, len(history.operations) + FAULTY_OPERATIONS, FAULT_SECONDS)
    for client in working:
        if client.done():
            client.result()  # raises what ended it
    healed, last = time.monotonic(), len(history.operations)
    missing = {"record", "session", "task"}  # paid calls end with the budget
    async with asyncio.timeout(PATIENCE):
        while missing:
            await asyncio.sleep(0.02)
            missing -= {one.kind for one in history.operations[first:] if _is_after(one, healed)}
    counts = Counter(operation.outcome for operation in history.operations[first:last])
    return Row(
        fault,
        Counter({name: counts[name] for name in ("acknowledged", "refused", "unknown")}),
        time.monotonic() - healed,
    )


def _is_after(operation: Operation, moment: float) -> bool:
    return operation.began > moment and operation.outcome == "acknowledged"


async def _wait_for(history: History, count: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while len(history.operations) < count and time.monotonic() < end:
        await asyncio.sleep(0.02)


_PAGE = """\
# Chaos

`make chaos ARGS="--seed {seed} --write"`, on {cores} cores: {clients} clients, two replicas, Redis,
PostgreSQL, and an upstream that bills and misbehaves.
In all: {sums}. No rule of `checker.py` was broken.

Operations that began while the fault held. *Unknown* ones had no answer, or one that does not say what
became of them. *Again* is when a record, a session and a task had been acknowledged after the fault.

| fault | acknowledged | refused | unknown | again |
| --- | ---: | ---: | ---: | ---: |
{table}
"""


def write(rows: list[Row], sums: str, seed: int) -> None:
    """Write the page."""
    table = [
        f"| {row.fault} | {' | '.join(str(count) for count in row.counts.values())} | {row.seconds:.1f} s |"
        for row in rows
    ]
    page = _PAGE.format(seed=seed, cores=os.cpu_count(), clients=CLIENTS, sums=sums, table="\n".join(table))
    PAGE.write_text(page, encoding="utf-8")


def main() -> int:
    """Run, print, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--short", action="store_true", help="some faults only, in less than three minutes")
    parser.add_argument("--write", action="store_true", help=f"write the figures to {PAGE.name}")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only these")
    options = parser.parse_args()
    faults = options.fault or list(SHORT if options.short else FAULTS)
    print(f"seed {options.seed}: {len(faults)} faults, {CLIENTS} clients", flush=True)
    with tempfile.TemporaryDirectory(prefix="bridgehead-chaos-") as folder, ExitStack() as stack:
        try:
            rows, broken, sums = asyncio.run(run(Path(folder), options.seed, faults, stack))
        except pytest.skip.Exception as reason:
            print(f"not possible here: {reason}")
            return 1
    print(f"\n{sums}")
    print("\n".join(f"BROKEN: {rule}" for rule in broken) or "no rule was broken")
    if options.write and not broken:
        write(rows, sums, options.seed)
    return int(bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
