"""How many coroutines stand between a tool and the socket: a call is a short way that can be read."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import bridgehead
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import environment
from tests.support import mercury_journal
from tests.support.checked import connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

OURS = str(Path(bridgehead.__file__).parent)
MOST_FRAMES = 10


def awaited(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    """Yield the frames of everything that a task waits in, from the outside to the inside."""
    waiting: Any = task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
        if frame is not None:
            yield frame
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)


async def test_a_stream_waits_in_few_frames_of_the_bridge_and_its_client(
    api: Simulator, tmp_path: Path
) -> None:
    api.faults.next(Fault(kind="silent", after=2))
    ask = {"messages": [{"role": "user", "content": "Of paths, in 8 words"}]}
    async with connect(make_bridge(MercurySettings(environment(api.url, tmp_path)))) as client:
        call = asyncio.ensure_future(client.call("mercury_chat_stream", ask, _meta={"progressToken": 1}))
        await client.inbox.of("notifications/progress")
        await mercury_journal.until(
            api.requests, lambda journal: journal.to("/chat/completions")[0].chunks >= 2
        )
        ways = [[frame.f_code for frame in awaited(task)] for task in asyncio.all_tasks()]
        call.cancel()

    (way,) = [codes for codes in ways if any(code.co_name == "stream" for code in codes)]
    ours = [
        f"{Path(code.co_filename).stem}.{code.co_name}" for code in way if code.co_filename.startswith(OURS)
    ]
    beyond_the_engine = ours[ours.index("chat.stream") :]
    assert len(beyond_the_engine) <= MOST_FRAMES, beyond_the_engine
