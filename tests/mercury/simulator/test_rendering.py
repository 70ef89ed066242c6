"""Rendering: the vendor's own client, in strict mode, takes answers whole and in pieces."""

from typing import Any

import pytest
from inceptionai import AsyncInception
from inceptionai.types import ChatCompletionChunk

from bridgehead.mercury.simulator import MODELS

ASK: Any = [{"role": "user", "content": "What is a bridge?"}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "measure",
            "parameters": {
                "type": "object",
                "properties": {"what": {"type": "string"}, "times": {"type": "integer", "minimum": 2}},
                "required": ["what", "times"],
            },
        },
    }
]
CHAT_MODELS = [model.id for model in MODELS if "chat.completions" in model.endpoints]


async def streamed(sdk: AsyncInception, **options: Any) -> list[ChatCompletionChunk]:
    """Stream a chat to its end."""
    options = {"model": "mercury-2", "messages": ASK, **options}
    return [chunk async for chunk in await sdk.chat.completions.create(stream=True, **options)]


def text(chunks: list[ChatCompletionChunk]) -> str:
    """Put the pieces of a chat together."""
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@pytest.mark.parametrize("model", CHAT_MODELS)
async def test_a_stream_says_the_same_as_the_whole_answer(sdk: AsyncInception, model: str) -> None:
    whole = await sdk.chat.completions.create(model=model, messages=ASK)
    chunks = await streamed(sdk, model=model)

    assert text(chunks) == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason] == ["stop"]
    assert len(chunks) == whole.usage.completion_tokens + 2


async def test_usage_comes_last_in_a_stream_when_it_is_asked_for(sdk: AsyncInception) -> None:
    whole = await sdk.chat.completions.create(model="mercury-2", messages=ASK)
    chunks = await streamed(sdk, stream_options={"include_usage": True})

    assert chunks[-1].choices == []
    assert chunks[-1].to_dict()["usage"] == whole.usage.to_dict()


async def test_the_sdk_gathers_a_stream_into_the_same_completion(sdk: AsyncInception) -> None:
    whole = await sdk.chat.completions.create(model="mercury-2", messages=ASK)
    async with sdk.chat.completions.stream(model="mercury-2", messages=ASK) as stream:
        await stream.until_done()

    assert stream.get_final_completion().choices[0].message.content == whole.choices[0].message.content


async def test_diffusing_replaces_the_text_until_it_is_sharp(sdk: AsyncInception) -> None:
    whole = await sdk.chat.completions.create(model="mercury-2", messages=ASK)
    chunks = await streamed(sdk, diffusing=True)
    final = str(whole.choices[0].message.content)
    seen = [c.choices[0].delta.content for c in chunks if c.choices[0].delta.content]
    right = [sum(a == b for a, b in zip(one, final, strict=True)) for one in seen]

    assert seen[-1] == final
    assert seen[0] != final
    assert right[0] < right[len(right) // 2] < right[-1] == len(final)
    assert len(seen) > 4


async def test_newer_models_break_usage_down(sdk: AsyncInception) -> None:
    long: Any = [{"role": "system", "content": "Be brief. " * 100}, *ASK]
    done = await sdk.chat.completions.create(model="mercury-2", messages=long, reasoning_effort="low")

    assert done.usage.completion_tokens_details is not None
    assert done.usage.completion_tokens_details.reasoning_tokens == 16
    assert done.usage.prompt_tokens_details is not None
    assert done.usage.prompt_tokens_details.cached_tokens == 192


async def test_older_models_count_flatly(sdk: AsyncInception) -> None:
    done = await sdk.chat.completions.create(model="mercury-coder-small", messages=ASK)
    usage = done.usage.to_dict()

    assert (usage["reasoning_tokens"], usage["cached_input_tokens"]) == (0, 0)
    assert done.usage.completion_tokens_details is None


async def test_a_summary_of_the_reasoning_comes_when_it_is_asked_for(sdk: AsyncInception) -> None:
    wishes: Any = {"reasoning_effort": "high", "reasoning_summary": True}
    done = await sdk.chat.completions.create(model="mercury-3", messages=ASK, **wishes)
    chunks = await streamed(sdk, model="mercury-3", **wishes)

    assert done.reasoning_summary is not None
    assert done.reasoning_summary.status == "complete"
    assert chunks[-1].reasoning_summary == done.reasoning_summary


@pytest.mark.parametrize("temperature", [0.2, 1.5])
async def test_a_temperature_out_of_range_is_reset_with_a_warning(
    sdk: AsyncInception, temperature: float
) -> None:
    done = await sdk.chat.completions.create(model="mercury-2", messages=ASK, temperature=temperature)
    chunks = await streamed(sdk, temperature=temperature)

    assert f"temperature {temperature}" in str(done.warning)
    assert chunks[0].to_dict()["warning"] == done.warning


async def test_a_tool_is_called_with_arguments_that_fit(sdk: AsyncInception) -> None:
    done = await sdk.chat.completions.create(model="mercury-2", messages=ASK, tools=TOOLS)
    (call,) = done.choices[0].message.tool_calls or []

    assert done.choices[0].finish_reason == "tool_calls"
    assert done.choices[0].message.content is None
    assert call.function.name == "measure"
    assert call.function.arguments == '{"what":"What is a bridge?","times":2}'


async def test_a_streamed_tool_call_is_the_same_in_pieces(sdk: AsyncInception) -> None:
    async with sdk.chat.completions.stream(model="mercury-2", messages=ASK, tools=TOOLS) as stream:
        await stream.until_done()
    choice = stream.get_final_completion().choices[0]
    (call,) = choice.message.tool_calls or []

    assert choice.finish_reason == "tool_calls"
    assert call.function.arguments == '{"what":"What is a bridge?","times":2}'


async def test_fill_in_the_middle_is_answered_whole_and_in_pieces(sdk: AsyncInception) -> None:
    asked: Any = {"model": "mercury-edit-2", "prompt": "def weigh(items):\n", "suffix": "\nweigh([])\n"}
    whole = await sdk.fim.completions.create(**asked)
    chunks = [chunk async for chunk in await sdk.fim.completions.create(stream=True, **asked)]

    assert whole.choices[0].finish_reason == "stop"
    assert "".join(chunk.choices[0].text or "" for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == "stop"
