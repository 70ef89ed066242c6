"""A client that does not read: the API's streams wait with it, and no memory is spent on them."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import ROOT, environment
from tests.support import mercury_journal, waiting
from tests.support.messages import call, request
from tests.support.stdio_peer import Peer

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMS = 4
LOOKS = 10
PATIENCE = 3 * waiting.PATIENCE  # megabytes go through two processes before a pipe is full
MOST_GROWTH = 40 * 1024 * 1024


@contextmanager
def peer(url: str, folder: Path) -> Iterator[Peer]:
    """Run the bridge with a client that reads only when it is told to."""
    their_input, outgoing = os.pipe()
    incoming, their_output = os.pipe()
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bridgehead", "mercury"],
            stdin=their_input,
            stdout=their_output,
            stderr=errors,
            env=environment(url, folder, LOG_LEVEL="error"),
            cwd=ROOT,
        )
    os.close(their_input)
    os.close(their_output)
    one = Peer(process, outgoing, incoming)
    try:
        yield one
    finally:
        process.kill()
        one.dispose()


async def moved(api: Simulator) -> int:
    return sum(one.chunks for one in api.requests.to("/chat/completions"))


async def still(api: Simulator) -> int:
    """Wait until no stream has moved for several looks."""
    deadline = time.monotonic() + PATIENCE
    seen: list[int] = []
    while len(seen) < LOOKS or len(set(seen[-LOOKS:])) > 1:
        assert time.monotonic() < deadline, "the streams go on although nobody reads"
        seen.append(await moved(api))
        await asyncio.sleep(0.2)
    return seen[-1]


async def test_a_client_that_does_not_read_stops_the_streams_and_reading_lets_them_go_on(
    api: Simulator, tmp_path: Path
) -> None:
    api.faults.always(Fault(kind="endless", chunk_delay=0.005))
    words = {"messages": [{"role": "user", "content": "in 20000 words"}], "diffusing": True}
    with peer(api.url, tmp_path) as client:
        client.send(request("initialize", {"protocolVersion": "2025-11-25"}, "hello"))
        for number in range(STREAMS):
            client.send(request("tools/call", call("mercury_chat_stream", words, progress=number)))
        await mercury_journal.until(
            api.requests, lambda journal: len(journal.to("/chat/completions")) == STREAMS, PATIENCE
        )
        stopped_at = await still(api)
        memory = client.resident()
        assert await still(api) == stopped_at
        assert client.resident() - memory < MOST_GROWTH

        client.read_on()
        deadline = time.monotonic() + PATIENCE
        while await moved(api) == stopped_at:
            assert time.monotonic() < deadline, "the streams do not go on although somebody reads"
            await asyncio.sleep(0.05)
