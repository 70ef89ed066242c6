"""Answers in every shape that the API is known to use, and in some that it should not; in every revision."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mcp.revisions import REVISIONS, Revision
from bridgehead.mercury.api import wire
from bridgehead.mercury.api.catalogue import Catalogue
from bridgehead.mercury.bridge import make
from bridgehead.mercury.calling.retries import retry_after
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from bridgehead.runtime.clock import SystemClock
from tests.mercury.process import KEY, error_of
from tests.support.checked import CheckedClient, connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of shapes, in 8 words"}]}
MODELS = {"data": [{"id": "m", "pricing": {"prompt": "free", "completion": None}}]}


@asynccontextmanager
async def answering(status: int, body: Any, folder: Path, **settings: str) -> AsyncIterator[CheckedClient]:
    """Connect to the bridge before an API that answers everything but the model list with one body."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        is_list = head.startswith(b"GET")
        found = (
            json.dumps(MODELS).encode()
            if is_list
            else body
            if isinstance(body, bytes)
            else json.dumps(body).encode()
        )
        writer.write(
            b"HTTP/1.1 %d X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % (200 if is_list else status, len(found))
        )
        writer.write(found)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    environment = {
        "MERCURY_API_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
        "MERCURY_API_KEY": KEY,
        "MERCURY_MODEL": "m",
        "MERCURY_MAX_RETRIES": "0",
        "BRIDGEHEAD_STATE_DIR": str(folder),
    }
    async with server, connect(make(MercurySettings(environment | settings))) as client:
        yield client


def completion(**more: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    return {"id": "1", "model": "m", "choices": [choice], "usage": {}, **more}


async def test_both_forms_of_usage_are_understood(tmp_path: Path) -> None:
    counts = {"prompt_tokens": 7, "completion_tokens": 5}
    older = {**counts, "reasoning_tokens": 3, "cached_input_tokens": 2}
    newer = {
        **counts,
        "total_tokens": 12,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    found = []
    for usage in (older, newer):
        async with answering(200, completion(usage=usage), tmp_path) as client:
            found.append((await client.call(CHAT, ASK))["structuredContent"]["metadata"]["usage"])

    assert found[0] == found[1]
    assert found[0] == {**counts, "total_tokens": 12, "reasoning_tokens": 3, "cached_input_tokens": 2}


async def test_a_message_in_parts_is_put_together(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    choice = {"message": {"content": parts}, "finish_reason": "stop"}
    async with answering(200, completion(choices=[choice]), tmp_path) as client:
        assert await client.text(CHAT, ASK) == "ab"


@pytest.mark.parametrize("price", ["nan", "-1", "inf", "free", None])
async def test_a_price_that_cannot_be_counted_with_is_none(price: str | None) -> None:
    assert wire.price(price) is None
    assert wire.price("0.00000025") == 2.5e-7


async def test_an_answer_without_usage_or_prices_is_an_answer(tmp_path: Path) -> None:
    async with answering(200, completion(usage=None, warning=["a", "b"]), tmp_path) as client:
        await client.call("mercury_list_models")
        metadata = (await client.call(CHAT, ASK))["structuredContent"]["metadata"]

    assert metadata["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert metadata["warnings"] == ["a", "b"]
    assert "cost_usd" not in metadata


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        {"choices": "none"},
        completion(choices=[]),
        completion(choices=None),
        completion(choices=[{"text": "x"}]),
    ],
    ids=["nothing", "a list", "no text", "wrong type", "no choice", "no choices", "no finish reason"],
)
async def test_an_answer_that_is_none_is_said_to_be_so(tmp_path: Path, body: Any) -> None:
    async with answering(200, body, tmp_path) as client:
        error = error_of(await client.call(CHAT, ASK))

    assert (error["type"], error["code"]) == ("api_error", "BAD_RESPONSE")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "plainly wrong"}, "plainly wrong."),
        ({"message": "wrong!"}, "wrong! "),
        ({"error": {"message": "no", "param": "stop"}}, "(at stop): no."),
        (b"<html>", "no reason given."),
        ({"error": {"message": "x" * 5000}}, "x" * 500 + "."),
    ],
)
async def test_the_reason_for_a_refusal_is_found_and_bounded(tmp_path: Path, body: Any, words: str) -> None:
    async with answering(400, body, tmp_path) as client:
        error = error_of(await client.call(CHAT, ASK))

    assert words in error["message"]
    assert len(error["message"]) < 700


@pytest.mark.parametrize(("content", "words"), [("nope", "not JSON"), ("[1]", "not a JSON object")])
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


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with answering(307, b"", tmp_path) as client:
        error = error_of(await client.call(CHAT, ASK))

    assert "307" in error["message"]


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)
async def test_every_revision_is_served(api: Simulator, tmp_path: Path, revision: Revision) -> None:
    environment = {"MERCURY_API_URL": api.url, "MERCURY_API_KEY": KEY, "BRIDGEHEAD_STATE_DIR": str(tmp_path)}
    async with connect(make(MercurySettings(environment)), revision=revision) as client:
        chat = await client.call(CHAT, ASK)
        stream = await client.call("mercury_chat_stream", ASK, _meta={"progressToken": 1})
        error = error_of(await client.call(CHAT, {}))

    for result in (chat, stream):
        held = result["structuredContent"] if revision.structured_output else result["_meta"]
        assert held["metadata"]["finish_reason"] == "stop"
    assert error["type"] == "validation_error"


async def test_a_bug_shows_nothing_but_its_reference(tmp_path: Path) -> None:
    bridge = make(MercurySettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path)}))
    failure = bridge.dialect.bug("1a2b")

    assert json.loads(str(failure))["error"]["code"] == "INTERNAL_ERROR"
    assert "1a2b" in str(failure)


@pytest.mark.parametrize(
    ("milliseconds", "value", "expected"),
    [
        ("1500", None, 1.5),
        (None, "2", 2.0),
        ("nonsense", "3", 3.0),
        ("-5", None, None),
        (None, "inf", None),
        (None, None, None),
        (None, "Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        (None, "Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
    ],
)
async def test_when_to_try_again_is_read_in_every_form(
    milliseconds: str | None, value: str | None, expected: float | None
) -> None:
    assert retry_after(milliseconds, value, 60.0) == expected


async def test_without_endpoints_in_the_list_a_model_for_edits_is_known_by_its_name() -> None:
    async def fetch() -> bytes:
        return b'{"data":[{"id":"mercury"},{"id":"mercury-edit"},{"id":"mercury-edit-next"}]}'

    catalogue = Catalogue(fetch, SystemClock())
    await catalogue.known()

    assert catalogue.able("edit", "mercury", ()) == "mercury-edit"
    assert catalogue.able("edit", "mercury", ("mercury", "mercury-edit-next")) == "mercury-edit-next"
    assert catalogue.able("fim", "mercury-edit", ()) == "mercury"
