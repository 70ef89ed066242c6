"""Records: durable records a second in PostgreSQL with 1 or 64 callers, by one replica or several on one day.

A replica is a process of its own (`python -m bench.scale.records URL SECONDS CALLERS`). PostgreSQL flushes
each commit; every record is checked to be there once.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import open_workspace
from bridgehead.commands import db
from bridgehead.mcp import socket_loop
from bridgehead.runtime.stores import postgres
from tests.support.postgres_server import running

DURABLE = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "256MB", "autovacuum": "on"}


def measured(seconds: float, replicas: int, callers: int) -> dict[str, float]:
    """Record for a while; return records a second, CPU time a record, and the median answer in ms."""
    with running(**DURABLE) as server:
        db.main(["migrate"], {"BRIDGEHEAD_DATABASE_URL": server.url})
        command = [sys.executable, "-m", "bench.scale.records", server.url, str(seconds), str(callers)]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(replicas)]
        told = [json.loads(process.communicate()[0]) for process in processes]
        stored = asyncio.run(_count(server.url))
    made = sum(one["records"] for one in told)
    assert stored == made, f"{made} records were answered, and {stored} are there"
    return {
        "rate": made / seconds,
        "cpu_us": sum(one["cpu"] for one in told) / made * 1e6,
        "median_ms": sorted(one["median_ms"] for one in told)[len(told) // 2],
    }


async def _count(url: str) -> int:
    connection = await postgres.load_driver().connect(url)
    try:
        found: int = await connection.fetchval("select count(*) from aoc_records")
    finally:
        await connection.close()
    return found


async def _record(url: str, seconds: float, callers: int) -> dict[str, float]:
    database = await postgres.acquire(url)
    workspace = open_workspace(AocSettings({"AOC_DATA_DIR": tempfile.gettempdir()}), database=database)
    took: list[float] = []

    async def call(number: int) -> None:
        while time.perf_counter() < end:
            begin = time.perf_counter()
            run = NewRun(1, 1, f"model-{number % 8}", int(begin * 1000) % 5000)
            await workspace.recorder.record(run, number)
            took.append(time.perf_counter() - begin)

    end = time.perf_counter() + seconds
    cpu = time.process_time()
    await asyncio.gather(*(call(number) for number in range(callers)))
    cpu = time.process_time() - cpu
    await postgres.release(database)
    took.sort()
    return {"records": len(took), "cpu": cpu, "median_ms": took[len(took) // 2] * 1000}


if __name__ == "__main__":
    url, seconds, callers = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    with asyncio.Runner(loop_factory=socket_loop) as runner:
        print(json.dumps(runner.run(_record(url, seconds, callers))))
    os._exit(0)
