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
ASKED = [
    {
        "name": "is_bug",
        "type": "noul",
        "instructions": "Is this a bug?",
        "options": [{"label": "true", "meaning": "It fails"}, {"label": "false"}],
    },
    {
        "name": "area",
        "type": "choice",
        "options": [{"label": "host", "meaning": "The HTTP side"}, {"label": "engine"}],
    },
    {
        "name": "urgency",
        "type": "score",
        "options": [{"label": "can wait"}, {"label": "today"}, {"label": "now", "meaning": "users wait"}],
    },
    {"name": "is_new", "type": "noul"},
]
SENT = {
    "is_bug": {"type": "noul", "instructions": "Is this a bug?", "criteria": {"true": "It fails"}},
    "area": {"type": "choice", "criteria": {"host": "The HTTP side", "engine": None}},
    "urgency": {"type": "score", "criteria": ["can wait", "today", "now: users wait"]},
    "is_new": {"type": "noul"},
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
GIVEN = {"state": {"log": "500 at /mcp"}, "questions": ASKED}


def asking(*questions: dict[str, Any]) -> dict[str, Any]:
    return {"state": "s", "questions": list(questions)}


async def test_questions_are_answered_with_probabilities(tmp_path: Path) -> None:
    Decision.model_validate(ANSWERED)  # what is answered here is what the vendor's client reads
    seen: list[bytes] = []
    async with answering(200, ANSWERED, tmp_path, seen=seen) as client:
        result = await client.call(DECIDE, GIVEN)

    (sent,) = seen
    path, _, body = sent.partition(b" ")
    assert path == b"/v1/decisions"
    assert json.loads(body) == {"model": "m", **GIVEN, "questions": SENT}
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
        ({"state": "s", "questions": []}, "questions"),
        (asking({"type": "noul"}), "name"),
        (asking({"name": "a", "type": "guess"}), "type"),
        (asking({"name": "a", "type": "choice"}), "the choice 'a' has no options"),
        (asking({"name": "a", "type": "noul", "options": [{"label": "yes"}]}), "true and false"),
        (asking({"name": "a", "type": "choice", "options": [{"label": "b"}] * 2}), "the same label"),
        (asking({"name": "a", "type": "noul"}, {"name": "a", "type": "noul"}), "the same name"),
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
