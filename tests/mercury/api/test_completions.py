"""What a response of the API means: every shape of it, and what cannot be used."""

from pathlib import Path
from typing import Any

import pytest

from tests.mercury.one_answer import answering, completion
from tests.mercury.process import error_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of shapes, in 8 words"}]}
PRICED = {"data": [{"id": "m", "pricing": {"prompt": "0.001", "completion": "0.01"}}]}


async def test_both_forms_of_usage_are_understood(tmp_path: Path) -> None:
    counts = {"prompt_tokens": 7, "completion_tokens": 5}
    older = {**counts, "total_tokens": 12, "reasoning_tokens": 3, "cached_input_tokens": 2}
    newer = {
        **counts,
        "total_tokens": 12,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    found = []
    for usage in (older, newer):
        async with answering(200, completion(usage=usage), tmp_path) as client:
            found.append((await client.call(CHAT, ASK))["structuredContent"]["metadata"]["usage"])

    assert found[0] == found[1]
    assert found[0] == {**counts, "total_tokens": 12, "reasoning_tokens": 3, "cached_input_tokens": 2}


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": 5},
        {"prompt_tokens": 5, "completion_tokens": -(10**9), "total_tokens": 5},
        {"total_tokens": 2**70},
        {"prompt_tokens": 7, "completion_tokens": 5, "reasoning_tokens": 10**15},
        {"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": -1}},
    ],
)
async def test_usage_that_cannot_be_true_is_not_counted_and_what_was_reserved_stays(
    tmp_path: Path, usage: dict[str, Any]
) -> None:
    ask = {**ASK, "max_tokens": 20, "cache": "bypass"}
    answer = completion(usage=usage)
    async with answering(200, answer, tmp_path, models=PRICED, MERCURY_BUDGET_USD="1") as client:
        answers = [(await client.call(CHAT, ask))["structuredContent"] for _ in range(2)]
        report = (await client.call("mercury_usage"))["structuredContent"]

    metadata = answers[0]["metadata"]
    assert "usage" not in metadata
    assert "so what this answer cost is not known" in metadata["warnings"][0]
    assert report["budget"]["committed_usd"] >= 2 * 20 * 0.01
    assert report["today"]["total"]["total_tokens"] == 0


async def test_a_message_in_parts_is_put_together(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    choice = {"message": {"content": parts}, "finish_reason": "stop"}
    async with answering(200, completion(choices=[choice]), tmp_path) as client:
        assert await client.text(CHAT, ASK) == "ab"


async def test_an_answer_without_usage_or_prices_is_an_answer(tmp_path: Path) -> None:
    async with answering(200, completion(usage=None, warning=["a", "b"]), tmp_path) as client:
        await client.call("mercury_list_models")
        metadata = (await client.call(CHAT, ASK))["structuredContent"]["metadata"]

    assert "usage" not in metadata
    assert metadata["warnings"][:2] == ["a", "b"]
    assert "reported no usage" in metadata["warnings"][2]
    assert "cost_usd" not in metadata


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        {"choices": "none"},
        completion(choices=[]),
        completion(choices=None),
        completion(choices=[{"text": ""}]),
        b'{"more":' + b"[" * 100_000,
    ],
    ids=["nothing", "a list", "no text", "wrong type", "no choice", "no choices", "no finish reason", "deep"],
)
async def test_an_answer_that_is_none_is_said_to_be_so(tmp_path: Path, body: Any) -> None:
    async with answering(200, body, tmp_path) as client:
        error = error_of(await client.call(CHAT, ASK))

    assert (error["type"], error["code"]) == ("api_error", "BAD_RESPONSE")


async def test_characters_for_private_use_arrive_as_they_are(tmp_path: Path) -> None:
    """Where nothing is broken, nothing is mended: halves of characters are kept as some of these."""
    answer = completion()
    answer["choices"][0]["message"]["content"] = text = "\U0010f83d\U0010fe00 and \U0010ffff"
    async with answering(200, answer, tmp_path) as client:
        result = await client.call(CHAT, ASK)

    assert result["content"][0]["text"] == text
