"""`mercury_decide`: questions about a state, in the shapes of the vendor's own client."""

import json
from pathlib import Path
from typing import Any

import pytest
from inceptionai.types import Decision

from tests.mercury.one_answer import answering
from tests.mercury.process import error_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

DECIDE = "mercury_decide"
QUESTIONS = {
    "is_bug": {"type": "noul", "instructions": "Is this a bug?", "criteria": {"true": "It fails"}},
    "area": {"type": "choice", "criteria": {"host": "The HTTP side", "engine": ""}},
    "urgency": {"type": "score", "criteria": ["can wait", "today", "now"]},
}
ANSWERS = {
    "is_bug": {"type": "noul", "noul": 0.93},
    "area": {
        "type": "choice",
        "choice": "host",
        "confidence": 0.8,
        "probabilities": {"host": 0.8, "engine": 0.2},
    },
    "urgency": {
        "type": "score",
        "score": 2.0,
        "confidence": 0.7,
        "probabilities": {"2": 0.7},
        "legend": {"2": "now"},
    },
}
ANSWERED = {"model": "m", "answers": ANSWERS, "usage": {"input_tokens": 40, "output_tokens": 3}}
GIVEN = {"state": {"log": "500 at /mcp"}, "questions": QUESTIONS}


async def test_questions_are_answered_with_probabilities(tmp_path: Path) -> None:
    Decision.model_validate(ANSWERED)  # what is answered here is what the vendor's client reads
    seen: list[bytes] = []
    async with answering(200, ANSWERED, tmp_path, seen=seen) as client:
        result = await client.call(DECIDE, GIVEN)

    (sent,) = seen
    path, _, body = sent.partition(b" ")
    assert path == b"/v1/decisions"
    assert json.loads(body) == {"model": "m", **GIVEN}
    assert result["structuredContent"]["answers"] == ANSWERS
    assert json.loads(result["content"][0]["text"]) == ANSWERS
    usage = {"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43}
    assert result["metadata"]["usage"] == result["structuredContent"]["metadata"]["usage"] == usage


async def test_an_answer_without_answers_cannot_be_used(tmp_path: Path) -> None:
    async with answering(200, {"model": "m", "usage": {}}, tmp_path) as client:
        assert error_of(await client.call(DECIDE, GIVEN))["code"] == "BAD_RESPONSE"


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"state": "s"}, "questions"),
        ({"state": "s", "questions": {}}, "questions"),
        ({"state": "s", "questions": {"a": {"type": "guess"}}}, "type"),
        ({"state": "s", "questions": {"a": {"type": "choice"}}}, "criteria"),
        ({**GIVEN, "max_tokens": 5}, "max_tokens"),
    ],
)
async def test_wrong_questions_are_a_validation_error(
    tmp_path: Path, wrong: dict[str, Any], where: str
) -> None:
    async with answering(200, ANSWERED, tmp_path) as client:
        error = error_of(await client.call(DECIDE, wrong))

    assert (error["type"], error["code"]) == ("validation_error", "INVALID_ARGUMENTS")
    assert where in error["message"]
