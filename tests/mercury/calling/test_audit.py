"""Audit: every call leaves a line, also one that was refused before anything was asked of the API."""

import asyncio
import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.simulator import Simulator
from tests.mercury.process import MODEL, bridge_process, environment, started
from tests.support.messages import call, initialize, request
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of traces, in 8 words"}]}


def outcomes(log: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    lines = [line for line in log if line["logger"] == "bridgehead.mercury.audit"]
    return sorted((line["tool"], line["outcome"], line["client"]) for line in lines)


async def test_a_call_that_is_refused_here_leaves_a_line_too(api: Simulator, tmp_path: Path) -> None:
    allowed = {"MERCURY_ALLOWED_MODELS": f"{MODEL},mercury-3,mercury-edit-2"}
    settings = {"MAX_REQUEST_SIZE": "1kb", **allowed}
    async with bridge_process(api.url, tmp_path, **settings) as client:
        await client.call("mercury_list_models")
        await client.error(CHAT, {})
        await client.error("mercury_fim_completion", {"prompt": "x" * 2000, "suffix": ""})
        await client.error("mercury_chat_stream", {**ASK, "model": "mercury-2.5"})
        await client.call("mercury_batch", {"prompts": ["short", "x" * 2000]})
        await client.call("mercury_usage")

    assert outcomes(client.log()) == [
        ("mercury_batch", "REQUEST_TOO_LARGE", "tests"),
        ("mercury_batch", "ok", "tests"),
        (CHAT, "INVALID_ARGUMENTS", "tests"),
        ("mercury_chat_stream", "MODEL_NOT_ALLOWED", "tests"),
        ("mercury_fim_completion", "REQUEST_TOO_LARGE", "tests"),
        ("mercury_list_models", "ok", "tests"),
        ("mercury_usage", "ok", "tests"),
    ]


async def test_a_list_that_cannot_be_had_is_noted_as_that(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_API_KEY="") as client:
        await client.error("mercury_list_models")

    assert outcomes(client.log()) == [("mercury_list_models", "MISSING_API_KEY", "tests")]


async def test_a_client_that_does_not_read_the_log_is_served_all_the_same(
    api: Simulator, tmp_path: Path
) -> None:
    """Its pipe holds some hundred lines; whoever waited for room in it would never answer again."""
    variables = environment(api.url, tmp_path, LOG_CONTENT="1")
    process = await started(variables, asyncio.subprocess.PIPE, 1024)  # so that this side does not read ahead
    assert process.stdin is not None
    assert process.stdout is not None
    long = {"messages": [{"role": "user", "content": "Of traces, in 8 words " + "x" * 2000}]}
    for message in [initialize(), *(request("tools/call", call(CHAT, long)) for _ in range(150))]:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    answered = 0
    async with asyncio.timeout(PATIENCE):
        while answered < 151:
            answered += (await process.stdout.read(65536)).count(b"\n")
    process.kill()
    await process.communicate()  # waiting alone would wait for a pipe that nobody reads


async def test_a_line_has_the_time_at_which_its_call_ended(api: Simulator, tmp_path: Path) -> None:
    """Not that at which the line was written, which is a tenth of a second later."""
    async with bridge_process(api.url, tmp_path) as client:
        await client.call(CHAT, ASK)
        answered = time.time()

    (line,) = [line for line in client.log() if line["logger"] == "bridgehead.mercury.audit"]
    assert datetime.fromisoformat(line["time"]).timestamp() <= answered + 0.001
