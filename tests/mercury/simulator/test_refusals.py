"""Refusals: what the simulated API does not accept, told in the vendor's way."""

from typing import Any

import inceptionai
import pytest
from inceptionai import AsyncInception

from bridgehead.mercury.simulator import NAMED, Fault, Simulator
from tests.mercury.simulator.raw import Raw, chat

ASK: Any = [{"role": "user", "content": "What is a bridge?"}]
EDIT = "/v1/edit/completions"
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


async def refused(raw: Raw, body: Any, path: str = "/v1/chat/completions") -> tuple[int, dict[str, Any]]:
    """Ask for something that is refused, and return the status and the error."""
    response = await raw.post(body, path)
    error: dict[str, Any] = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status, error


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


async def test_an_unknown_model_is_not_found(raw: Raw) -> None:
    status, error = await refused(raw, chat(model="mercury-9"))

    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert "`mercury-9`" in error["message"]


async def test_a_prompt_that_is_too_long_hears_by_how_much(raw: Raw) -> None:
    status, error = await refused(raw, chat("word " * 30_000, model="mercury-coder-small"))

    assert (status, error["code"]) == (400, "context_length_exceeded")
    assert "maximum context length is 32000 tokens" in error["message"]
    assert "resulted in 37504 tokens" in error["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({}, None),
        (chat(messages=[]), "messages"),
        (chat(temperature=2.5), "temperature"),
        (chat(max_tokens=0), "max_tokens"),
        (chat(max_tokens="many"), "max_tokens"),
        (chat(reasoning_effort="utmost"), "reasoning_effort"),
        (chat(model="mercury-edit-2"), "model"),
        (chat(tools=[], tool_choice={"type": "function", "function": {"name": "fly"}}), "tool_choice"),
        (b"{", None),
        (b"", None),
    ],
)
async def test_a_request_that_is_not_right_is_refused_and_its_field_named(
    raw: Raw, body: Any, param: str | None
) -> None:
    status, error = await refused(raw, body)

    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)


ENDLESS = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}


@pytest.mark.parametrize(
    "schema",
    [{"type": "colour"}, {"properties": 5}, {"type": "number", "multipleOf": 0, "minimum": 1}, ENDLESS],
)
async def test_a_schema_that_nothing_can_follow_is_refused(raw: Raw, schema: dict[str, Any]) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "it", "schema": schema}}
    called = [{"type": "function", "function": {"name": "it", "parameters": schema}}]

    answer_status, answer_error = await refused(raw, chat(response_format=wanted))
    tool_status, tool_error = await refused(raw, chat(tools=called))

    assert (answer_status, answer_error["param"]) == (400, "response_format")
    assert (tool_status, tool_error["param"]) == (400, "tools")


@pytest.mark.parametrize(
    ("messages", "more", "param"),
    [
        ([{"role": "user", "content": "no tags"}], {}, "messages"),
        ([], {}, "messages"),
        ([{"role": "system", "content": "<|code_to_edit|>x<|/code_to_edit|>"}], {}, "messages"),
        ([{"role": "user", "content": "<|code_to_edit|>x<|/code_to_edit|>"}], {"stream": True}, "stream"),
    ],
)
async def test_an_edit_needs_one_message_with_tags_and_no_stream(
    raw: Raw, messages: Any, more: dict[str, Any], param: str
) -> None:
    body = {"model": "mercury-edit-2", "messages": messages, **more}

    status, error = await refused(raw, body, EDIT)

    assert (status, error["param"]) == (400, param)


async def test_addresses_and_methods_that_do_not_exist_are_refused(raw: Raw) -> None:
    assert (await raw.post({}, "/v1/embeddings")).status == 404
    assert (await raw.post({}, "/v1/models")).status == 405
    assert (await raw.get("/v1/chat/completions")).status == 405
    assert (await raw.get("/_nothing")).status == 404


async def test_a_request_without_a_key_is_refused(raw: Raw) -> None:
    response = await raw.post(chat(), key="")

    assert response.status == 401


async def test_only_the_keys_that_it_is_given_are_good_and_each_gets_its_own() -> None:
    async with Simulator(keys={"sk_good": None, "sk_poor": Fault(status=402)}) as api:
        raw = Raw(api.port)
        statuses = [(await raw.post(chat(), key=key)).status for key in ("sk_good", "sk_poor", "sk_other")]
        assert api.keys is not None
        api.keys["sk_other"] = None
        statuses.append((await raw.post(chat(), key="sk_other")).status)
        await raw.http.close()

    assert statuses == [200, 402, 401, 200]
    assert [request.key for request in api.requests] == ["sk_good", "sk_poor", "sk_other", "sk_other"]


async def test_keys_may_be_a_plain_list() -> None:
    async with Simulator(keys=["sk_one"]) as api:
        raw = Raw(api.port)
        statuses = [(await raw.post(chat(), key=key)).status for key in ("sk_one", "sk_two")]
        await raw.http.close()

    assert statuses == [200, 401]


async def test_what_is_not_http_is_refused_and_the_server_lives_on(raw: Raw) -> None:
    response, _ = await raw.http.begin(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    await response.begin()

    assert response.status == 400
    assert await response.closed_by_server()
    assert (await raw.post(chat())).status == 200
