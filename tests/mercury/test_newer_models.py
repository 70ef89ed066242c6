"""Newer models and other addresses: what an API refuses is learned, and what it needs is hinted at."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime import env_file
from tests.mercury.one_answer import completion
from tests.mercury.process import KEY, error_of
from tests.support.checked import CheckedClient, connect
from tests.support.fake_api import Answer, Request, fake_api

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of models, in 8 words"}]}
REFUSALS = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.",
    "temperature": "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default "
    "(1) value is supported.",
}
"""As OpenAI words them."""


@asynccontextmanager
async def picky(folder: Path) -> AsyncIterator[tuple[CheckedClient, list[dict[str, Any]]]]:
    """Connect to a bridge before an API that takes neither field; gives the bodies that it got, too."""
    bodies: list[dict[str, Any]] = []

    async def respond(request: Request) -> Answer:
        if request.method == "GET":
            return Answer(404, b"{}")
        body = json.loads(request.body)
        bodies.append(body)
        for name, text in REFUSALS.items():
            if name in body:
                error = {"message": text, "type": "invalid_request_error", "param": name}
                return Answer(400, json.dumps({"error": error}).encode())
        return Answer(200, json.dumps(completion()).encode())

    async with fake_api(respond) as api:
        settings = {"MERCURY_API_URL": f"{api.url}/v1", "MERCURY_API_KEY": KEY, "MERCURY_MODEL": "m"}
        state = {"BRIDGEHEAD_STATE_DIR": str(folder)}
        async with connect(make_bridge(MercurySettings(settings | state))) as client:
            yield client, bodies


async def test_what_a_model_refuses_is_translated_or_left_out_and_learned(tmp_path: Path) -> None:
    asked = {**ASK, "max_tokens": 50, "temperature": 0.2}
    async with picky(tmp_path) as (client, bodies):
        first = await client.call(CHAT, asked)
        await client.call(CHAT, asked)

    assert first["content"][0]["text"] == "hi"
    assert [sorted(body.keys() - {"messages", "model"}) for body in bodies] == [
        ["max_tokens", "temperature"],
        ["max_completion_tokens", "temperature"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]
    assert {body.get("max_completion_tokens") for body in bodies} == {None, 50}
    notes = first["structuredContent"]["notes"]
    assert any("max_tokens was sent as max_completion_tokens" in note for note in notes)
    assert any(note.startswith("Not sent") and "temperature" in note for note in notes)


async def test_of_two_limits_the_larger_one_stays(tmp_path: Path) -> None:
    async with picky(tmp_path) as (client, bodies):
        await client.call(CHAT, {**ASK, "max_tokens": 50, "max_completion_tokens": 20})

    assert bodies[-1]["max_completion_tokens"] == 50


async def test_an_address_may_end_with_a_query(tmp_path: Path) -> None:
    paths: list[str] = []

    async def respond(request: Request) -> Answer:
        paths.append(request.path)
        return Answer(200, json.dumps(completion() if request.method == "POST" else {"data": []}).encode())

    async with fake_api(respond) as api:
        settings = {
            "MERCURY_API_URL": f"{api.url}/v1/?api-version=7",
            "MERCURY_API_KEY": KEY,
            "MERCURY_MODEL": "m",
            "BRIDGEHEAD_STATE_DIR": str(tmp_path),
        }
        async with connect(make_bridge(MercurySettings(settings))) as client:
            await client.call(CHAT, ASK)

    assert "/v1/chat/completions?api-version=7" in paths


@pytest.mark.parametrize(("path", "is_hinted"), [("", True), ("/v1", False)])
async def test_an_address_without_its_version_gets_a_hint(
    tmp_path: Path, path: str, *, is_hinted: bool
) -> None:
    async def respond(request: Request) -> Answer:
        return Answer(404, b"404 page not found")

    async with fake_api(respond) as api:
        settings = {
            "MERCURY_API_URL": f"{api.url}{path}",
            "MERCURY_API_KEY": KEY,
            "MERCURY_MODEL": "m",
            "BRIDGEHEAD_STATE_DIR": str(tmp_path),
        }
        async with connect(make_bridge(MercurySettings(settings))) as client:
            error = error_of(await client.call(CHAT, ASK))

    assert error["code"] == "NOT_FOUND"
    assert (f"try {api.url}/v1" in error["message"]) == is_hinted


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_a_proxy_in_lower_case_reaches_the_settings(name: str) -> None:
    narrowed = env_file.narrow({name: "http://proxy:1", "other": "x"}, MercurySettings.declared)

    assert dict(narrowed) == {name: "http://proxy:1"}
    settings = MercurySettings(narrowed)
    assert settings.https_proxy == "http://proxy:1"
