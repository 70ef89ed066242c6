"""Whether an answer has the form that was asked for."""

from pathlib import Path

import pytest

from tests.mercury.one_answer import answering, completion
from tests.mercury.process import error_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of shapes, in 8 words"}]}


@pytest.mark.parametrize(
    ("content", "words"),
    [("nope", "not JSON"), ("[1]", "not a JSON object"), ("[" * 100_000, "not JSON")],
    ids=["no JSON", "a list", "deep"],
)
async def test_an_answer_in_another_form_than_asked_for_is_an_error(
    tmp_path: Path, content: str, words: str
) -> None:
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    async with answering(200, completion(choices=[choice]), tmp_path) as client:
        error = error_of(await client.call(CHAT, {**ASK, "response_format": {"type": "json_object"}}))

    assert (error["code"], error["content"]) == ("FORMAT_MISMATCH", content)
    assert words in error["message"]


async def test_an_answer_that_does_not_fit_its_schema_says_where(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    choice = {"message": {"content": '{"a": [1, "2"]}'}, "finish_reason": "stop"}
    async with answering(200, completion(choices=[choice]), tmp_path) as client:
        error = error_of(await client.call(CHAT, {**ASK, "response_format": wanted}))

    assert "at /a/1" in error["message"]
