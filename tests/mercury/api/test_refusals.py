"""What the API refuses, and what is made of its words."""

from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.api.refusals import refused
from tests.mercury.one_answer import answering
from tests.mercury.process import error_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of bridges, in 8 words"}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "plainly wrong"}, "plainly wrong."),
        ({"message": "wrong!"}, "wrong! "),
        ({"detail": "Not like this"}, "Not like this."),
        ({"error": {"message": "no", "param": "stop"}}, "(at stop): no."),
        (b"<html>", "no reason given."),
        (b"[" * 100_000, "no reason given."),
        ({"error": {"message": "x" * 5000}}, "x" * 500 + "."),
    ],
)
async def test_the_reason_for_a_refusal_is_found_and_bounded(tmp_path: Path, body: Any, words: str) -> None:
    async with answering(400, body, tmp_path) as client:
        error = error_of(await client.call(CHAT, ASK))

    assert words in error["message"]
    assert len(error["message"]) < 700


@pytest.mark.parametrize("status", [201, 308])
async def test_a_status_that_is_neither_success_nor_refusal_is_not_blamed_on_the_arguments(
    status: int,
) -> None:
    error = refused(status, b"", None, path="/chat/completions")

    assert (error.code, error.type) == ("BAD_RESPONSE", "api_error")
    assert str(status) in str(error)
    assert "MERCURY_API_URL" in str(error)


async def test_long_waits_are_written_for_people() -> None:
    assert "in 3,600 s" in str(refused(429, b"", 3600.0, path=""))
    assert "in 0.25 s" in str(refused(429, b"", 0.25, path=""))
