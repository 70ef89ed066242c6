"""The fake model: each API gets the script in its own form, and the record tells what a model would see."""

import json
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from tests.support.fake_model import Call, FakeModel, Say
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from openai import OpenAI

SCRIPT: list[Call | Say] = [Call("add", {"a": 2}), Say("It is 4.")]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def open_client(model: FakeModel) -> "OpenAI":
    from openai import OpenAI  # half a second, which workers without this file need not spend

    return OpenAI(base_url=f"{model.url}/v1", api_key="fake")


def post(model: FakeModel, path: str, body: dict[str, Any]) -> bytes:
    data, headers = json.dumps(body).encode(), {"content-type": "application/json"}
    request = Request(model.url + path, data, headers)  # noqa: S310 - our own address
    with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - our own address
        raw: bytes = answer.read()
    return raw


def events(raw: bytes) -> list[dict[str, Any]]:
    """Return the data of a stream's events."""
    lines = [line[6:] for line in raw.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_chat_completions_are_what_their_client_reads() -> None:
    tool: Any = {"type": "function", "function": {"name": "calc_add", "parameters": SCHEMA}}
    messages: list[Any] = [{"role": "user", "content": "2 + 2?"}]
    with FakeModel(SCRIPT) as model:
        client = open_client(model)
        asked = client.chat.completions.create(model="m", messages=messages, tools=[tool])
        call = asked.choices[0].message.tool_calls
        assert call is not None
        messages += [
            asked.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call[0].id, "content": '{"sum":4}'},
        ]
        stream = list(client.chat.completions.create(model="m", messages=messages, tools=[tool], stream=True))

    assert call[0].model_dump()["function"] == {"name": "calc_add", "arguments": '{"a": 2}'}
    assert stream[0].choices[0].delta.content == "It is 4."
    assert stream[-1].usage is not None
    assert stream[-1].usage.total_tokens > 0
    assert (model.turns[1].calls, model.turns[1].results) == (["calc_add"], ['{"sum":4}'])


def test_responses_are_what_their_client_reads() -> None:
    tools: list[Any] = [
        {"type": "function", "name": "add", "parameters": SCHEMA, "strict": False},
        {
            "type": "namespace",
            "name": "calc",
            "description": "Sums.",
            "tools": [{"type": "function", "name": "add"}],
        },
    ]
    with FakeModel(SCRIPT) as model:
        client = open_client(model)
        asked = client.responses.create(model="m", input="2 + 2?", tools=tools)
        call = asked.output[0].model_dump()
        answer: list[Any] = [
            {"role": "user", "content": "2 + 2?"},
            {"type": "function_call", "call_id": call["call_id"], "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": call["call_id"], "output": "4"},
        ]
        stream = list(client.responses.create(model="m", input=answer, tools=tools, stream=True))

    # A server's tool is preferred to one of the client's own with the same name.
    assert (call["name"], call["namespace"], json.loads(call["arguments"])) == ("add", "calc", {"a": 2})
    assert stream[-1].type == "response.completed"
    assert stream[-1].response.output_text == "It is 4."
    assert "Sums." in model.turns[0].text
    assert model.turns[1].last_result == "4"


def test_messages_stream_a_call_and_count_tokens() -> None:
    body = {
        "model": "m",
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": "2 + 2?"}],
        "tools": [{"name": "mcp__calc__add", "input_schema": SCHEMA}],
    }
    with FakeModel(SCRIPT) as model:
        sent = events(post(model, "/v1/messages?beta=true", body))
        counted = json.loads(post(model, "/v1/messages/count_tokens", body))

    assert [one["type"] for one in sent] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert sent[1]["content_block"]["name"] == "mcp__calc__add"
    assert json.loads(sent[2]["delta"]["partial_json"]) == {"a": 2}
    assert sent[4]["delta"]["stop_reason"] == "tool_use"
    assert counted["input_tokens"] > 0
    assert "Be brief." in model.turns[0].text


def test_gemini_streams_a_call() -> None:
    declaration = {"name": "add", "description": "Adds.", "parametersJsonSchema": SCHEMA}
    body = {
        "contents": [{"role": "user", "parts": [{"text": "2 + 2?"}]}],
        "tools": [{"functionDeclarations": [declaration]}],
    }
    with FakeModel(SCRIPT) as model:
        (sent,) = events(post(model, "/v1beta/models/m:streamGenerateContent?alt=sse", body))

    (part,) = sent["candidates"][0]["content"]["parts"]
    assert (part["functionCall"]["name"], part["functionCall"]["args"]) == ("add", {"a": 2})
    assert model.turns[0].tools[0].schema == SCHEMA


@pytest.mark.parametrize(("found", "block", "missing"), [(["add"], "tool_use", []), ([], "text", ["add"])])
def test_a_tool_behind_a_search_is_searched_for_once(
    found: list[str], block: str, missing: list[str]
) -> None:
    search: dict[str, Any] = {"name": "ToolSearch", "input_schema": {}}
    tools = [search, *({"name": f"mcp__calc__{name}", "input_schema": SCHEMA} for name in found)]
    first = {"role": "user", "content": "Deferred: mcp__calc__add, mcp__calc__sub."}
    used = {"type": "tool_use", "id": "1", "name": "ToolSearch", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "…"}
    later = [first, {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    with FakeModel(SCRIPT) as model:
        asked = json.loads(post(model, "/v1/messages", {"messages": [first], "tools": [search]}))
        then = json.loads(post(model, "/v1/messages", {"messages": later, "tools": tools}))

    assert asked["content"][0]["input"]["query"] == "select:mcp__calc__add"
    assert then["content"][0]["type"] == block
    assert model.missing == missing


def test_a_function_can_be_the_script_and_requests_without_tools_are_no_turns() -> None:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Title?"}]}
    with FakeModel(lambda turn: Say(f"{len(turn.tools)} tools")) as model:
        title = json.loads(post(model, "/v1/messages", body))
        answer = json.loads(post(model, "/v1/messages", {**body, "tools": [{"name": "x"}]}))

    assert title["content"][0]["text"] == "ok"
    assert answer["content"][0]["text"] == "1 tools"
    assert (len(model.turns), len(model.others)) == (1, 1)
