"""Garbage: a failed call keeps nothing, or its megabytes of text would wait for a garbage collection."""

import asyncio
import gc
from pathlib import Path

import pytest

from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime import plugins
from tests.support.checked import connect

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("tool", ["mercury_chat_completion", "mercury_chat_stream"])
@pytest.mark.parametrize(
    "faults",
    [[Fault(status=400)], [Fault(status=504), Fault(status=504)], [Fault(status=504)], [Fault(kind="drop")]],
    ids=["refused", "refused twice", "retried", "lost"],
)
async def test_a_failed_call_leaves_nothing_for_the_garbage_collector(
    api: Simulator, tmp_path: Path, faults: list[Fault], tool: str
) -> None:
    settings = MercurySettings(
        {
            "MERCURY_API_URL": api.url,
            "MERCURY_API_KEY": "sk_test",
            "MERCURY_MAX_RETRIES": "1",
            "BRIDGEHEAD_STATE_DIR": str(tmp_path),
        }
    )
    async with connect(plugins.load("mercury").make(settings, None)) as client:
        await client.call("mercury_list_models")
        gc.collect()
        gc.disable()
        try:
            for fault in faults:
                api.faults.next(fault)
            await client.call(tool, {"messages": [{"role": "user", "content": "In 8 words"}]})
            await asyncio.sleep(0)  # the loop itself holds what ended in this step
            left = [error.code for error in gc.get_objects() if isinstance(error, MercuryError)]
        finally:
            gc.enable()

    assert left == []
