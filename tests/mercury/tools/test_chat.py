"""`mercury_chat_completion`, over a real process, against the simulated API."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import HEARTBEAT_SECONDS, KEY, MAX_RESPONSE_BYTES, BridgeProcess, bridge_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOL = "mercury_chat_completion"
ASK = [{"role": "user", "content": "What is a bridge, in 12 words?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


async def test_an_answer_has_its_text_and_the_metadata_of_the_contract(
    client: BridgeProcess, api: Simulator
) -> None:
    result = await client.call(TOOL, {"messages": ASK})

    text = api.text_of({"model": "mercury-2", "messages": ASK})
    answer, cost = result["content"]
    assert answer == {"type": "text", "text": text}
    assert cost["text"].startswith("Cost: $")
    structured = result["structuredContent"]
    assert structured["content"] == text
    metadata = structured["metadata"]
    assert (metadata["model"], metadata["finish_reason"]) == ("mercury-2", "stop")
    usage = metadata["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


async def test_every_input_reaches_the_api_as_it_was_given(client: BridgeProcess, api: Simulator) -> None:
    given: dict[str, Any] = {
        "messages": [{"role": "system", "content": "Be short."}, *ASK],
        "model": "mercury-3",
        "temperature": 0.7,
        "max_tokens": 50,
        "top_p": 0.9,
        "frequency_penalty": -0.5,
        "presence_penalty": 0.5,
        "stop": ["END"],
        "user": "u1",
        "max_completion_tokens": 40,
        "reasoning_effort": "low",
        "response_format": {"type": "text"},
        "tools": [WEATHER],
        "tool_choice": "none",
        "diffusing": False,
        "seed": 7,
    }

    result = await client.call(TOOL, {**given, "timeout_ms": 5000, "cache": "bypass"})

    assert "isError" not in result
    (sent,) = api.requests.to("/chat/completions")
    assert sent.body == given
    assert sent.headers["authorization"] == f"Bearer {KEY}"


async def test_what_is_not_given_is_not_sent(client: BridgeProcess, api: Simulator) -> None:
    await client.call(TOOL, {"messages": ASK})

    assert api.requests.to("/chat/completions")[0].body == {"messages": ASK, "model": "mercury-2"}


async def test_the_default_model_is_that_of_the_contract(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_MODEL="") as client:
        result = await client.call(TOOL, {"messages": ASK})

    assert result["structuredContent"]["metadata"]["model"] == "mercury-coder-small"


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"messages": [{"role": "user", "content": "x", "name": "y"}]}, "name"),
        ({"messages": ASK, "model": ""}, "model"),
        ({"messages": ASK, "model": 5}, "model"),
        ({"messages": ASK, "temperature": 2.1}, "temperature"),
        ({"messages": ASK, "temperature": -0.1}, "temperature"),
        ({"messages": ASK, "max_tokens": 0}, "max_tokens"),
        ({"messages": ASK, "max_tokens": 1.5}, "max_tokens"),
        ({"messages": ASK, "top_p": 1.1}, "top_p"),
        ({"messages": ASK, "frequency_penalty": 2.5}, "frequency_penalty"),
        ({"messages": ASK, "presence_penalty": -2.5}, "presence_penalty"),
        ({"messages": ASK, "stop": "END"}, "stop"),
        ({"messages": ASK, "user": 1}, "user"),
        ({"messages": ASK, "reasoning_effort": "much"}, "reasoning_effort"),
        ({"messages": ASK, "response_format": {"type": "xml"}}, "response_format"),
        ({"messages": ASK, "response_format": {"type": "json_schema"}}, "json_schema"),
        ({"messages": ASK, "tool_choice": "maybe"}, "tool_choice"),
        ({"messages": ASK, "cache": "always"}, "cache"),
        ({"messages": ASK, "timeout_ms": 0}, "timeout_ms"),
        ({"messages": ASK, "extra": 1}, "extra"),
    ],
)
async def test_arguments_out_of_range_are_a_validation_error_that_says_where(
    client: BridgeProcess, api: Simulator, wrong: dict[str, Any], where: str
) -> None:
    error = await client.error(TOOL, wrong)

    assert (error["type"], error["code"]) == ("validation_error", "INVALID_ARGUMENTS")
    assert where in error["message"]
    assert not api.requests.to("/chat/completions")


@pytest.mark.parametrize("choice", [{"type": "function", "function": {"name": "weather"}}, "weather"])
async def test_tool_calls_come_back_as_structure(client: BridgeProcess, choice: Any) -> None:
    result = await client.call(TOOL, {"messages": ASK, "tools": [WEATHER], "tool_choice": choice})

    (call,) = result["structuredContent"]["tool_calls"]
    assert (call["type"], call["function"]["name"]) == ("function", "weather")
    assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert result["structuredContent"]["metadata"]["finish_reason"] == "tool_calls"
    assert json.loads(result["content"][0]["text"])[0]["id"] == call["id"]


async def test_the_result_of_a_tool_call_can_be_sent_back(client: BridgeProcess, api: Simulator) -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        *ASK,
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
    ]

    result = await client.call(TOOL, {"messages": messages, "tools": [WEATHER]})

    assert "isError" not in result
    assert api.requests.to("/chat/completions")[0].body["messages"] == messages


async def test_an_answer_that_fits_its_schema_is_given(client: BridgeProcess) -> None:
    schema = {"name": "answer", "schema": ANSWER_SCHEMA, "strict": True}
    wanted = {"type": "json_schema", "json_schema": schema}

    result = await client.call(TOOL, {"messages": ASK, "response_format": wanted})

    assert set(json.loads(result["structuredContent"]["content"])) == {"answer"}


async def test_an_answer_cut_off_inside_its_json_is_an_error_with_the_answer(client: BridgeProcess) -> None:
    schema = {"name": "answer", "schema": ANSWER_SCHEMA}
    wanted = {"type": "json_schema", "json_schema": schema}

    error = await client.error(TOOL, {"messages": ASK, "response_format": wanted, "max_tokens": 1})

    assert (error["type"], error["code"]) == ("api_error", "FORMAT_MISMATCH")
    assert error["content"]


async def test_a_schema_that_is_none_is_refused_before_anything_is_asked(
    client: BridgeProcess, api: Simulator
) -> None:
    for schema in ({"type": "nope"}, {"$ref": "http://127.0.0.1:9/other.json"}, {"pattern": "("}):
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        error = await client.error(TOOL, {"messages": ASK, "response_format": wanted})
        assert (error["type"], error["code"]) == ("validation_error", "INVALID_SCHEMA")

    assert not api.requests.to("/chat/completions")


async def test_a_json_object_is_checked_to_be_one(client: BridgeProcess) -> None:
    wanted = {"type": "json_object"}

    result = await client.call(TOOL, {"messages": ASK, "response_format": wanted})

    assert isinstance(json.loads(result["structuredContent"]["content"]), dict)


async def test_a_warning_of_the_api_is_passed_on(client: BridgeProcess) -> None:
    result = await client.call(TOOL, {"messages": ASK, "temperature": 0.1})

    (warning,) = result["structuredContent"]["metadata"]["warnings"]
    assert "temperature" in warning.lower()


async def test_an_answer_costs_what_the_price_list_says(client: BridgeProcess) -> None:
    models = (await client.call("mercury_list_models"))["structuredContent"]["models"]
    price = next(model["price_usd_per_token"] for model in models if model["id"] == "mercury-2")

    metadata = (await client.call(TOOL, {"messages": ASK}))["structuredContent"]["metadata"]

    usage = metadata["usage"]
    expected = usage["prompt_tokens"] * price["prompt"] + usage["completion_tokens"] * price["completion"]
    assert metadata["cost_usd"] == pytest.approx(expected)


async def test_arguments_above_the_size_limit_are_refused(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MAX_REQUEST_SIZE="1kb") as client:
        error = await client.error(TOOL, {"messages": [{"role": "user", "content": "x" * 1000}]})

    assert (error["type"], error["code"]) == ("validation_error", "REQUEST_TOO_LARGE")
    assert "MAX_REQUEST_SIZE" in error["message"]


async def test_an_answer_above_the_size_limit_is_an_error(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, **{MAX_RESPONSE_BYTES: "300"}) as client:
        error = await client.error(TOOL, {"messages": [{"role": "user", "content": "in 500 words"}]})

    assert (error["type"], error["code"]) == ("api_error", "RESPONSE_TOO_LARGE")


async def test_a_long_silence_is_bridged_with_signs_of_life(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(delay=1.5))
    async with bridge_process(api.url, tmp_path, **{HEARTBEAT_SECONDS: "0.05"}) as client:
        await client.call(TOOL, {"messages": ASK}, progress=5)
        values = [notice["progress"] for notice in client.progress()]

    assert len(values) >= 2
    assert values == sorted(set(values))
    assert all("message" not in notice for notice in client.progress())


CALLED = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


async def test_a_conversation_with_tool_calls_goes_on_in_its_usual_shape(
    client: BridgeProcess, api: Simulator
) -> None:
    messages = [
        {"role": "user", "content": "What is f?"},
        {"role": "assistant", "content": None, "tool_calls": [CALLED]},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
    ]
    assert "isError" not in await client.call("mercury_chat_completion", {"messages": messages})

    assert api.requests.to("/chat/completions")[0].body["messages"] == messages


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ({"role": "tool", "content": "42"}, "messages[1].tool_call_id"),
        ({"role": "user", "content": None}, "messages[1].content"),
        ({"role": "assistant", "content": None}, "messages[1].content"),
        ({"role": "user"}, "messages[1].content"),
    ],
)
async def test_a_message_that_lacks_something_is_refused_with_its_place(
    client: BridgeProcess, api: Simulator, message: dict[str, Any], where: str
) -> None:
    given = {"messages": [{"role": "user", "content": "What is f?"}, message]}
    error = await client.error("mercury_chat_completion", given)

    assert (error["type"], error["code"]) == ("validation_error", "INVALID_ARGUMENTS")
    assert where in error["message"]
    assert not api.requests.to("/chat/completions")


async def test_a_model_that_cannot_do_it_is_refused_with_those_that_can(
    client: BridgeProcess, api: Simulator
) -> None:
    given = {"messages": [{"role": "user", "content": "Hello"}], "model": "mercury-edit-2"}
    error = await client.error("mercury_chat_completion", given)

    assert (error["type"], error["code"]) == ("validation_error", "MODEL_NOT_SUITABLE")
    assert "(at model)" in error["message"]
    assert (
        "Use one of: mercury-3, mercury-2.5, mercury-2, mercury-coder-small, mercury-coder, mercury."
        in error["message"]
    )
