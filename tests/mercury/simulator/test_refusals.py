"""Refusals: what the simulated API does not accept, told in the vendor's way."""

from typing import Any

import inceptionai
import pytest
from inceptionai import AsyncInception

from bridgehead.mercury.simulator import NAMED, Fault, Simulator
from tests.mercury.simulator.raw import Raw, chat, refused

ASK: Any = [{"role": "user", "content": "What is a bridge?"}]
STATUSES: dict[int, type[inceptionai.APIStatusError]] = {
    400: inceptionai.BadRequestError,
    401: inceptionai.AuthenticationError,
    402: inceptionai.APIStatusError,
    404: inceptionai.NotFoundError,
    408: inceptionai.APIStatusError,
    429: inceptionai.RateLimitError,
    500: inceptionai.InternalServerError,
    502: inceptionai.InternalServerError,
    503: inceptionai.InternalServerError,
    504: inceptionai.InternalServerError,
}


@pytest.mark.parametrize("status", STATUSES)
async def test_every_status_reaches_the_sdk_as_its_own_error(
    api: Simulator, sdk: AsyncInception, status: int
) -> None:
    api.faults.next(Fault(status=status))

    with pytest.raises(STATUSES[status]) as caught:
        await sdk.chat.completions.create(model="mercury-2", messages=ASK)

    assert caught.value.status_code == status
    assert isinstance(caught.value.body, dict)
    assert set(caught.value.body["error"]) == {"message", "type", "param", "code"}


async def test_a_fault_can_say_it_in_its_own_words(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(status=429, code="tokens", message="Too many tokens a minute."))

    status, error = await refused(raw, chat())

    assert (status, error["code"], error["message"]) == (429, "tokens", "Too many tokens a minute.")


async def test_a_prompt_can_be_called_too_long_without_being_long(api: Simulator, raw: Raw) -> None:
    api.faults.next(NAMED["context"])

    status, error = await refused(raw, chat())

    assert (status, error["code"]) == (400, "context_length_exceeded")
    assert "resulted in 40012 tokens" in error["message"]


async def test_a_prompt_that_is_too_long_hears_by_how_much(raw: Raw) -> None:
    status, error = await refused(raw, chat("word " * 30_000, model="mercury-coder-small"))

    assert (status, error["code"]) == (400, "context_length_exceeded")
    assert "maximum context length is 32000 tokens" in error["message"]
    assert "resulted in 37504 tokens" in error["message"]


ENDLESS = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}


@pytest.mark.parametrize(
    "schema",
    [{"type": "colour"}, {"properties": 5}, ENDLESS],
)
async def test_a_schema_that_nothing_can_follow_is_refused(raw: Raw, schema: dict[str, Any]) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "it", "schema": schema}}
    called = [{"type": "function", "function": {"name": "it", "parameters": schema}}]

    answer_status, answer_error = await refused(raw, chat(response_format=wanted))
    tool_status, tool_error = await refused(raw, chat(tools=called))

    assert (answer_status, answer_error["param"]) == (400, "response_format")
    assert (tool_status, tool_error["param"]) == (400, "tools")
