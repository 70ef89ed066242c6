"""Service: which addresses there are, and which models answer at each."""

from typing import Any

import pytest
from inceptionai import AsyncInception

from bridgehead.mercury.simulator import MODELS
from tests.mercury.simulator.raw import Raw, chat, refused

ASK: Any = [{"role": "user", "content": "What is a bridge?"}]


CHAT_MODELS = [model.id for model in MODELS if "chat.completions" in model.endpoints]


@pytest.mark.parametrize("model", CHAT_MODELS)
async def test_a_chat_is_answered_by_every_model(sdk: AsyncInception, model: str) -> None:
    done = await sdk.chat.completions.create(model=model, messages=ASK)

    assert done.model == model
    assert "What is a bridge?" in str(done.choices[0].message.content)
    assert done.choices[0].finish_reason == "stop"
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    assert done.warning is None


async def test_an_edit_gives_the_code_back_changed(sdk: AsyncInception) -> None:
    code = "<|code_to_edit|>\ntotal = 1<|cursor|>\n<|/code_to_edit|>"
    done = await sdk.edit.completions.create(
        model="mercury-edit-2", messages=[{"role": "user", "content": code}]
    )

    assert done.choices[0].message.content == "total = 1\n# checked\n"


async def test_the_models_of_each_endpoint_are_listed_too(sdk: AsyncInception) -> None:
    lists = [await sdk.models.list_chat(), await sdk.models.list_fim(), await sdk.models.list_edit()]

    assert [[model.id for model in one.data] for one in lists] == [
        CHAT_MODELS,
        ["mercury-edit-2", "mercury-coder-small", "mercury-coder"],
        ["mercury-edit-2"],
    ]


async def test_an_unknown_model_is_not_found(raw: Raw) -> None:
    status, error = await refused(raw, chat(model="mercury-9"))

    assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert "`mercury-9`" in error["message"]


async def test_addresses_and_methods_that_do_not_exist_are_refused(raw: Raw) -> None:
    assert (await raw.post({}, "/v1/embeddings")).status == 404
    assert (await raw.post({}, "/v1/models")).status == 405
    assert (await raw.get("/v1/chat/completions")).status == 405
    assert (await raw.get("/_nothing")).status == 404
