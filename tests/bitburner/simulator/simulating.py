"""`bridgehead bitburner simulate` as a process, and what it prints."""

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support import endable
from tests.support.waiting import PATIENCE

LIMIT = PATIENCE


@asynccontextmanager
async def simulated(*arguments: str, output: int = PIPE) -> AsyncIterator[Process]:
    """Run the command; it has to end with the test at the latest."""
    process = await asyncio.create_subprocess_exec(
        *(*endable.words_for("bridgehead"), "bitburner", "simulate", *arguments),
        stdin=PIPE,
        stdout=output,
        stderr=output,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await asyncio.wait_for(process.wait(), LIMIT)


async def until(process: Process, text: str) -> str:
    """Read up to the line that holds a text, and return it."""
    assert process.stdout is not None
    async with asyncio.timeout(LIMIT):
        while line := (await process.stdout.readline()).decode():
            if text in line:
                return line.rstrip()
    raise EOFError(text)
