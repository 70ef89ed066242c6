"""`mercury_chat_stream`, over a real process: what is told as it comes, and what is given in the end."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import (
    HEARTBEAT_SECONDS,
    MAX_RESPONSE_BYTES,
    BridgeProcess,
    bridge_process,
    error_of,
)
from tests.support import mercury_journal
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOL = "mercury_chat_stream"


def ask(words: int = 30) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Tell me of bridges in {words} words"}]


async def test_the_pieces_add_up_to_the_answer(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(chunk_delay=0.01))
    result = await client.call(TOOL, {"messages": ask()}, progress=1)

    text = api.text_of({"model": "mercury-2", "messages": ask()})
    assert result["content"][0]["text"] == text
    assert "".join(notice["message"] for notice in client.progress()) == text
    assert 3 <= len(client.progress()) <= 20  # about 0.3 s, in steps of 50 ms


async def test_progress_grows_and_belongs_to_its_token(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(chunk_delay=0.01))
    await client.call(TOOL, {"messages": ask()}, progress=17)

    values = [notice["progress"] for notice in client.progress()]
    assert values == sorted(set(values))
    assert {notice["progressToken"] for notice in client.progress()} == {17}


async def test_without_a_token_nothing_is_told_and_the_answer_is_whole(
    client: BridgeProcess, api: Simulator
) -> None:
    result = await client.call(TOOL, {"messages": ask()})

    assert result["content"][0]["text"] == api.text_of({"model": "mercury-2", "messages": ask()})
    assert not client.progress()


async def test_the_first_piece_is_told_before_the_second_is_there(
    client: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(kind="silent", after=1))
    request_id, _ = client.start(TOOL, {"messages": ask()}, progress=2)

    (first, *_) = await client.progress_until(1)

    assert first["message"] == "You"
    client.cancel(request_id)


async def test_pieces_that_wait_are_told_before_the_stream_goes_on(
    client: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(kind="silent", after=3, chunk_delay=0.01))
    request_id, _ = client.start(TOOL, {"messages": ask()}, progress=2)

    async with asyncio.timeout(PATIENCE):
        while "".join(told := [notice["message"] for notice in client.progress()]) != "You asked: “Tell":
            await client.progress_until(len(told) + 1)

    client.cancel(request_id)


async def test_while_diffusing_each_message_is_the_whole_text(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(chunk_delay=0.06))
    arguments = {"messages": ask(), "diffusing": True}
    result = await client.call(TOOL, arguments, progress=3)

    text = api.text_of({"model": "mercury-2", **arguments})
    messages = [notice["message"] for notice in client.progress()]
    assert result["structuredContent"]["content"] == text
    assert messages[-1] == text
    assert len(messages) > 2
    assert messages[0] != text
    assert all(len(message) > len(text) / 2 for message in messages)


async def test_the_metadata_has_speed_and_usage(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(chunk_delay=0.005, delay=0.05))
    metadata = (await client.call(TOOL, {"messages": ask()}))["structuredContent"]["metadata"]

    assert metadata["usage"]["completion_tokens"] == 30
    assert metadata["finish_reason"] == "stop"
    assert 50 <= metadata["time_to_first_token_ms"] < metadata["duration_ms"]
    assert 0 < metadata["tokens_per_second"] < 1000
    (sent,) = api.requests.to("/chat/completions")
    assert sent.body["stream"] is True
    assert sent.body["stream_options"] == {"include_usage": True}


async def test_a_warning_of_the_api_is_passed_on(client: BridgeProcess) -> None:
    result = await client.call(TOOL, {"messages": ask(), "temperature": 0.1})

    assert len(result["structuredContent"]["metadata"]["warnings"]) == 1


async def test_tool_calls_are_put_together_from_their_pieces(client: BridgeProcess) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    arguments = {"messages": ask(), "tools": [tool], "tool_choice": "required"}

    result = await client.call(TOOL, arguments)

    (call,) = result["structuredContent"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert call["id"]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


@pytest.mark.parametrize("kind", ["cut", "short", "garbage", "error"])
async def test_a_stream_that_breaks_is_an_error_with_the_text_so_far(
    client: BridgeProcess, api: Simulator, kind: Any
) -> None:
    api.faults.next(Fault(kind=kind, after=3))
    error = error_of(await client.call(TOOL, {"messages": ask()}))

    assert error["type"] == "api_error"
    assert error["content"] == "You asked: “Tell"
    assert "content" in error["message"]
    assert len(api.requests.to("/chat/completions")) == 1  # never again after the first byte


async def test_a_stream_that_ends_with_its_usage_is_whole_without_its_last_event(
    client: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(kind="undone"))
    result = await client.call(TOOL, {"messages": ask()})

    assert result["content"][0]["text"] == api.text_of({"model": "mercury-2", "messages": ask()})


async def test_a_stream_that_fails_before_its_first_byte_is_tried_again(
    client: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(status=503), Fault(status=500), Fault(status=429, retry_after_ms="10"))
    result = await client.call(TOOL, {"messages": ask()})

    assert result["content"][0]["text"] == api.text_of({"model": "mercury-2", "messages": ask()})
    assert len(api.requests.to("/chat/completions")) == 4


async def test_cancelling_ends_the_request_to_the_api(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(kind="endless", chunk_delay=0.01))
    request_id, _ = client.start(TOOL, {"messages": ask()}, progress=4)
    await client.progress_until(2)
    client.cancel(request_id)

    await mercury_journal.until(api.requests, lambda journal: journal[0].aborted is not None, within=PATIENCE)


@pytest.mark.parametrize("tool", [TOOL, "mercury_chat_completion"])
async def test_cancelling_before_the_first_byte_ends_the_request_too(
    client: BridgeProcess, api: Simulator, tool: str
) -> None:
    api.faults.next(Fault(delay=10 * PATIENCE))
    request_id, _ = client.start(tool, {"messages": ask()})
    await mercury_journal.until(api.requests, lambda journal: journal[0])
    client.cancel(request_id)

    await mercury_journal.until(api.requests, lambda journal: journal[0].aborted is not None, within=PATIENCE)


async def test_silence_is_bridged_with_signs_of_life_that_are_no_text(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(kind="silent", after=1))
    async with bridge_process(
        api.url, tmp_path, MERCURY_IDLE_TIMEOUT="2000", **{HEARTBEAT_SECONDS: "0.04"}
    ) as client:
        error = error_of(await client.call(TOOL, {"messages": ask()}, progress=5))
        notices = client.progress()

    assert (error["code"], error["content"]) == ("TIMEOUT", "You")
    assert [notice["message"] for notice in notices if "message" in notice] == ["You"]
    assert len(notices) >= 4


async def test_a_stream_that_never_ends_is_ended_by_the_deadline(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(kind="endless", chunk_delay=0.01))
    async with bridge_process(api.url, tmp_path) as client:
        begun = time.monotonic()
        error = error_of(await client.call(TOOL, {"messages": ask(), "timeout_ms": 300}))
        spent = time.monotonic() - begun

    assert (error["type"], error["code"]) == ("api_error", "TIMEOUT")
    assert error["content"].startswith("You asked")
    assert spent > 0.25


async def test_a_stream_may_go_on_for_longer_than_a_request(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(chunk_delay=0.08))
    async with bridge_process(api.url, tmp_path, REQUEST_TIMEOUT="1500") as client:
        result = await client.call(TOOL, {"messages": ask()})

    assert result["structuredContent"]["metadata"]["duration_ms"] > 1500


async def test_a_stream_above_the_size_limit_is_an_error(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, **{MAX_RESPONSE_BYTES: "1000"}) as client:
        error = error_of(await client.call(TOOL, {"messages": ask(500)}))

    assert error["code"] == "STREAM_INCOMPLETE"
    assert "1,000 bytes" in error["message"]
