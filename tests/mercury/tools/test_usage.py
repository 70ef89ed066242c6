"""`mercury_usage`: what was used, since the start and today."""

from pathlib import Path

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import bridge_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of use, in 8 words"}]}


async def test_models_that_clients_make_up_are_counted_together(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path) as client:
        for number in range(5):
            error = await client.error(CHAT, {**ASK, "model": f"made-up-{number}"})
            assert error["code"] == "MODEL_NOT_FOUND"
        report = (await client.call("mercury_usage"))["structuredContent"]

    assert list(report["today"]["models"]) == ["(unknown)"]
    assert report["since_start"]["models"]["(unknown)"]["errors"] == 5


async def test_usage_adds_up_by_model_and_over_processes(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path) as client:
        await client.call("mercury_list_models")
        first = (await client.call(CHAT, {**ASK, "cache": "use"}))["structuredContent"]["metadata"]
        await client.call(CHAT, {**ASK, "cache": "use"})
        await client.call("mercury_chat_stream", {**ASK, "model": "mercury-3"})
        api.faults.next(Fault(status=400))
        await client.error(CHAT, ASK)
        report = (await client.call("mercury_usage"))["structuredContent"]
    async with bridge_process(api.url, tmp_path) as client:
        await client.call(CHAT, ASK)
        later = (await client.call("mercury_usage"))["structuredContent"]

    models = report["since_start"]["models"]
    assert set(models) == {"mercury-2", "mercury-3"}
    assert (models["mercury-2"]["calls"], models["mercury-2"]["errors"]) == (3, 1)
    assert models["mercury-2"]["cache_hits"] == 1
    assert models["mercury-2"]["total_tokens"] == first["usage"]["total_tokens"]
    assert models["mercury-2"]["cost_usd"] == pytest.approx(first["cost_usd"])
    assert report["since_start"]["total"]["calls"] == 4
    assert report["today"] == report["since_start"]
    assert (report["cache"]["hits"], report["cache"]["entries"]) == (1, 1)
    assert "budget" not in report
    assert later["since_start"]["total"]["calls"] == 1
    assert later["today"]["total"]["calls"] == 5
