"""Frames: how many of our own coroutines a streamed call is suspended in, from the server to the far side.

Every one of them is resumed for every piece that arrives, and stands between a reader and what happens.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import bridgehead
from bridgehead.mercury.bridge import manifest
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.manifest import Manifest
from tests.mercury.process import environment
from tests.support.host_bridges import StandIns
from tests.support.host_server import hosting
from tests.support.messages import call
from tests.support.waiting import until

OURS = Path(bridgehead.__file__).parent.as_posix()
MOST_IN_ALL = 22
MOST_BEFORE_THE_TOOL = 7
ASKED = {"messages": [{"role": "user", "content": "Count to twenty"}]}


class Mercury(StandIns):
    """The real bridge in the place of a stand-in."""

    def manifests(self, wanted: Any = ()) -> Mapping[str, Manifest]:
        return {"mercury": manifest}


def name_file(code: CodeType) -> str:
    """Return where a function is, with slashes on every system."""
    return code.co_filename.replace("\\", "/")


def frames(task: asyncio.Task[Any]) -> list[CodeType]:
    """List our own coroutines that a task is suspended in, outermost first."""
    found: list[CodeType] = []
    waits: Any = task.get_coro()
    while waits is not None:
        code = getattr(waits, "cr_code", None) or getattr(waits, "ag_code", None)
        if code is not None and name_file(code).startswith(OURS):
            found.append(code)
        waits = getattr(waits, "cr_await", None) or getattr(waits, "ag_await", None)
    return found


def calls() -> list[list[CodeType]]:
    """List the frames of every request that waits for the API."""
    found = [frames(task) for task in asyncio.all_tasks()]
    return [codes for codes in found if any("mercury/api" in name_file(code) for code in codes)]


async def test_a_streamed_call_crosses_few_frames(tmp_path: Path) -> None:
    async with Simulator() as api:
        api.faults.always(Fault(delay=30.0))
        async with hosting(tmp_path, environment(api.url, tmp_path), stand_ins=Mercury()) as host:
            calling = asyncio.create_task(host.post_call("/mcp", call("mercury_chat_stream", ASKED)))
            await until(lambda: any("_run" in codes[0].co_name for codes in calls() if codes))
            (codes,) = [codes for codes in calls() if "_run" in codes[0].co_name]
            calling.cancel()

    listed = [f"{name_file(code).removeprefix(OURS)}:{code.co_qualname}" for code in codes]
    before = [name for name in listed if not name.startswith("/mercury/") and "runtime" not in name]
    assert len(before) <= MOST_BEFORE_THE_TOOL, listed
    assert len(listed) <= MOST_IN_ALL, "\n".join(listed)
