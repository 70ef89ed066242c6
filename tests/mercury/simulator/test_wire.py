"""Wire: what a request may say, and the field that is named where it says something wrong."""

from typing import Any

import pytest
from inceptionai import AsyncInception

from tests.mercury.simulator.raw import Raw, chat, refused


async def test_content_in_parts_is_understood(sdk: AsyncInception) -> None:
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": "What is a bridge?"}]}]
    done = await sdk.chat.completions.create(model="mercury-2", messages=parts)

    assert "What is a bridge?" in str(done.choices[0].message.content)


EDIT = "/v1/edit/completions"


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
