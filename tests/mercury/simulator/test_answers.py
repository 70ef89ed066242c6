"""Answers: they follow from the request alone, and keep to what it says about their length and form."""

import runpy
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from inceptionai.types import Decision

from bridgehead.mercury.simulator import MODELS, Simulator
from tests.mercury.simulator.raw import Raw, chat, content, events

SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 4}, "b": {"type": "number"}}},
    {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 1},
    {"type": "array"},
    {"properties": {"when": {"type": "boolean"}, "what": {"type": "null"}}},
    {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
    {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/node"}},
        "required": ["first"],
        "$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
]


async def answered(raw: Raw, body: dict[str, Any], path: str = "/v1/chat/completions") -> Any:
    """Ask, and return the decoded answer of a request that must succeed."""
    response = await raw.post(body, path)
    found = await response.json()
    assert response.status == 200, found
    return found


async def text(raw: Raw, body: dict[str, Any]) -> str:
    """Ask, and return what was said."""
    said: str = (await answered(raw, body))["choices"][0]["message"]["content"]
    return said


async def test_the_same_request_has_the_same_answer_and_another_one_another(raw: Raw) -> None:
    first, again = await text(raw, chat("One?")), await text(raw, chat("One?"))
    other, seeded = await text(raw, chat("Two?")), await text(raw, chat("One?", seed=3))

    assert first == again
    assert len({first, other, seeded}) == 3


async def test_what_will_be_said_can_be_asked_beforehand(api: Simulator, raw: Raw) -> None:
    fim = {"model": "mercury-coder", "prompt": "def f():\n", "suffix": "f()\n"}
    edit = {
        "model": "mercury-edit-2",
        "messages": [{"role": "user", "content": "<|original_code|>x = 1<|/original_code|>"}],
    }
    filled = await answered(raw, fim, "/v1/fim/completions")
    edited = await answered(raw, edit, "/v1/edit/completions")

    assert api.text_of(chat("One?")) == await text(raw, chat("One?"))
    assert api.text_of(fim) == filled["choices"][0]["text"]
    assert api.text_of(edit) == edited["choices"][0]["message"]["content"]


@pytest.mark.parametrize("words", [1, 6, 500, 20_000])
async def test_an_answer_has_as_many_words_as_it_is_asked_for(raw: Raw, words: int) -> None:
    done = await answered(raw, chat(f"Tell it in {words} words, please."))

    assert len(done["choices"][0]["message"]["content"].split()) == words
    assert done["usage"]["completion_tokens"] == words


async def test_a_long_text_can_diffuse_too(api: Simulator, raw: Raw) -> None:
    body = chat("Tell it in 5000 words.", diffusing=True, stream=True)
    steps = content(events(await (await raw.post(body)).body()))

    assert steps[-1] == api.text_of(body)
    assert len(steps) == len(set(steps)) == 13


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
async def test_an_answer_is_cut_at_its_limit_and_says_so(raw: Raw, limit: str) -> None:
    whole = await text(raw, chat())
    limited = {**chat(), limit: 5}
    done = await answered(raw, limited)
    streamed = events(await (await raw.post({**limited, "stream": True})).body())

    assert done["choices"][0]["finish_reason"] == "length"
    assert done["usage"]["completion_tokens"] == 5
    assert whole.startswith(done["choices"][0]["message"]["content"])
    assert "".join(content(streamed)) == done["choices"][0]["message"]["content"]
    assert streamed[-2]["choices"][0]["finish_reason"] == "length"


async def test_reasoning_counts_against_the_limit(raw: Raw) -> None:
    done = await answered(raw, chat(reasoning_effort="high", max_completion_tokens=40))

    assert done["usage"]["completion_tokens"] == 40
    assert done["usage"]["completion_tokens_details"]["reasoning_tokens"] == 20


async def test_an_answer_never_exceeds_what_its_model_can_say(raw: Raw) -> None:
    done = await answered(raw, chat("in 30000 words", model="mercury-coder-small", max_tokens=25_000))

    assert done["usage"]["completion_tokens"] == 16_384
    assert done["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("stop", ["bridge", ["nowhere", "bridge", "is a bridge"]])
async def test_an_answer_ends_before_a_stop_sequence(raw: Raw, stop: str | list[str]) -> None:
    done = await answered(raw, chat(stop=stop))
    said = done["choices"][0]["message"]["content"]

    assert said.startswith("You asked: “What ")
    assert "bridge" not in said
    assert done["choices"][0]["finish_reason"] == "stop"


async def test_a_filled_gap_ends_at_the_first_blank_line_unless_told_otherwise(raw: Raw) -> None:
    asked = {"model": "mercury-coder", "prompt": "def f():\n"}
    usual = (await answered(raw, asked, "/v1/fim/completions"))["choices"][0]["text"]
    whole = (await answered(raw, {**asked, "stop": []}, "/v1/fim/completions"))["choices"][0]["text"]

    assert "\n\n" not in usual
    assert "\n\n" in whole
    assert whole.startswith(usual)


async def test_json_is_answered_where_json_is_wanted(raw: Raw) -> None:
    said = await text(raw, chat(response_format={"type": "json_object"}))

    assert msgspec.json.decode(said) == {"answer": "What is a bridge?"}


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_an_answer_follows_the_schema_that_it_is_given(raw: Raw, schema: dict[str, Any]) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "it", "schema": schema}}
    value = msgspec.json.decode(await text(raw, chat(response_format=wanted)))

    assert jsonschema_rs.is_valid(schema, value)


def tool(name: str) -> dict[str, Any]:
    """Declare a tool without arguments."""
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        (None, "paint"),
        ("auto", "paint"),
        ("required", "paint"),
        ("none", None),
        ({"type": "function", "function": {"name": "build"}}, "build"),
    ],
)
async def test_the_choice_of_a_tool_is_followed(raw: Raw, choice: Any, called: str | None) -> None:
    body = chat("Please paint it.", tools=[tool("build"), tool("paint")], tool_choice=choice)
    message = (await answered(raw, body))["choices"][0]["message"]

    calls = [call["function"]["name"] for call in message.get("tool_calls", [])]
    assert calls == ([called] if called else [])


async def test_a_tool_that_has_answered_is_not_called_again(raw: Raw) -> None:
    body = chat("Please paint it.", tools=[tool("paint")])
    body["messages"] += [{"role": "assistant"}, {"role": "tool", "content": "done", "tool_call_id": "1"}]

    done = await answered(raw, body)

    assert done["choices"][0]["finish_reason"] == "stop"
    assert "Please paint it." in done["choices"][0]["message"]["content"]


async def test_another_catalogue_can_be_served() -> None:
    async with Simulator(models=MODELS[:1]) as api:
        raw = Raw(api.port)
        listed = await (await raw.get("/v1/models")).json()
        refused = await raw.post(chat(model="mercury-2"))
        await raw.http.close()

    assert [model["id"] for model in listed["data"]] == ["mercury-3"]
    assert refused.status == 404


@pytest.mark.parametrize(
    ("prompt", "suffix"),
    [
        ("def weight(items):\n", "\n    return total\n"),
        ("def weight(items):\n    ", "\n    return grams\n"),
        ("class Scale:\n    pass\n\ndef weight(items: list[int]) -> int:\n", ""),
    ],
)
async def test_what_is_filled_into_a_function_can_be_run(
    raw: Raw, tmp_path: Path, prompt: str, suffix: str
) -> None:
    asked = {"model": "mercury-coder", "prompt": prompt, "suffix": suffix}
    filled = (await answered(raw, asked, "/v1/fim/completions"))["choices"][0]["text"]
    program = tmp_path / "program.py"
    program.write_text(prompt + filled + suffix)

    assert runpy.run_path(str(program))["weight"]([1, 2, 3]) == 6


async def test_decisions_are_what_the_vendors_client_reads(raw: Raw) -> None:
    questions = {
        "fixable": {"type": "noul"},
        "area": {"type": "choice", "criteria": {"host": None, "engine": None}},
        "urgency": {"type": "score", "criteria": ["can wait", "today", "now"]},
    }
    asked = {"model": "mercury-3", "state": "The build failed.", "questions": questions}
    response = await raw.post(asked, "/v1/decisions")

    decision = Decision.model_validate(msgspec.json.decode(await response.body()))
    assert set(decision.answers) == set(questions)
