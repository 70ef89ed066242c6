"""Kills: several server processes record on one day while one after another is killed and started again.

Whatever the moment of a kill: a record that was answered is in the file exactly once, one that was not is
there at most once, and every file that a reader sees meanwhile is whole and has all that was answered before
it looked.
"""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgehead.runtime import durable

WINDOW = 8
"""Calls that one client has on their way."""
LIMIT = 120.0
Record = tuple[str, int]


@dataclass
class Outcome:
    """What became of all records of a round."""

    sent: set[Record] = field(default_factory=set)
    answered: set[Record] = field(default_factory=set)
    kills: int = 0
    looks: int = 0
    problems: list[str] = field(default_factory=list)

    def judge(self, entries: list[dict[str, Any]], answered: set[Record], when: str) -> None:
        """Hold a file to what was answered before it was read."""
        found = Counter((entry["llm"], entry["speedMs"]) for entry in entries)
        lost = [record for record in answered if not found[record]]
        twice = [record for record, count in found.items() if count > 1]
        unknown = found.keys() - self.sent
        if lost or twice or unknown:
            self.problems.append(f"{when}: lost {lost[:3]}, twice {twice[:3]}, unknown {list(unknown)[:3]}")


async def play(folder: Path, *, processes: int, records: int, kills: int, seed: int) -> Outcome:
    """Play one round in an empty folder."""
    outcome = Outcome()
    workers = [_Worker(f"writer-{number}", folder, records, outcome) for number in range(processes)]
    async with asyncio.timeout(LIMIT):
        draw = random.Random(seed)  # noqa: S311 - moments, not secrets
        most = processes * records * 3 // 4
        killer = asyncio.create_task(_kill(workers, kills, draw, outcome, most=most))
        reader = asyncio.create_task(_read(folder / "speeds" / "day01.json", outcome))
        await asyncio.gather(*(worker.run() for worker in workers))
        for task in (killer, reader):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    entries = json.loads((folder / "speeds" / "day01.json").read_bytes())["entries"]
    outcome.judge(entries, outcome.answered, "at the end")
    return outcome


def unmeasured() -> dict[str, str]:
    """Give the environment for a process that is killed, and would leave half a file of measured coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


class _Worker:
    """One client that starts its server again whenever it dies, until all its records are sent."""

    def __init__(self, name: str, folder: Path, records: int, outcome: Outcome) -> None:
        self._name = name
        self._folder = folder
        self._records = records
        self._outcome = outcome
        self._next = 0
        self.process: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        while self._next < self._records:
            await self._live()

    async def _live(self) -> None:
        """Record until all is answered or the server is gone; what it did not answer is not sent again."""
        self.process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bridgehead",
            "aoc",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**unmeasured(), "AOC_DATA_DIR": str(self._folder)},
        )
        with suppress(ConnectionError):
            await self._converse(process)
        self.process = None
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()

    async def _converse(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{}}\n')
        await process.stdin.drain()
        await process.stdout.readline()
        waiting = 0
        while waiting or self._next < self._records:
            while waiting < WINDOW and self._next < self._records:
                process.stdin.write(self._call())
                waiting += 1
            await process.stdin.drain()
            line = await process.stdout.readline()
            if not line.endswith(b"\n"):
                return
            self._note(json.loads(line))
            waiting -= 1

    def _call(self) -> bytes:
        number, self._next = self._next, self._next + 1
        self._outcome.sent.add((self._name, number))
        arguments = {"day": 1, "phase": 1, "llm_name": self._name, "speed_ms": number}
        params = {"name": "record_speed", "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        return json.dumps(request).encode() + b"\n"

    def _note(self, answer: dict[str, Any]) -> None:
        if "result" in answer:
            self._outcome.answered.add((self._name, answer["id"]))
        else:
            self._outcome.problems.append(f"refused: {answer}")


async def _kill(
    workers: list[_Worker], kills: int, draw: random.Random, outcome: Outcome, *, most: int
) -> None:
    """Kill some server or other at random moments, spread over the whole round."""
    for moment in sorted(draw.sample(range(1, most), kills)):
        while len(outcome.answered) < moment:  # noqa: ASYNC110 - what counts is how far all of them are
            await asyncio.sleep(0.001)
        await asyncio.sleep(draw.uniform(0, 0.01))
        alive = [process for worker in workers if (process := worker.process) and process.returncode is None]
        if alive:
            with suppress(ProcessLookupError):
                draw.choice(alive).kill()
                outcome.kills += 1


async def _read(path: Path, outcome: Outcome) -> None:
    """Look at the file again and again."""
    while True:
        await asyncio.sleep(0.01)
        answered = set(outcome.answered)
        try:
            entries = json.loads(durable.retry_while_locked(path.read_bytes))["entries"]
        except FileNotFoundError:
            if answered:
                outcome.problems.append("the file was gone")
            continue
        except ValueError as problem:
            outcome.problems.append(f"a reader saw half a file: {problem}")
            continue
        outcome.judge(entries, answered, "meanwhile")
        outcome.looks += 1
