"""No key comes out, wherever an upstream puts it: results, notifications, log lines, audit lines."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mercury.api import wire
from bridgehead.mercury.api.stream import StreamedAnswer
from bridgehead.runtime import logs
from tests.mercury.one_answer import answering, completion, one_answer
from tests.mercury.process import KEY

pytestmark = pytest.mark.asyncio(loop_scope="module")

ESCAPED = "".join(f"\\u{ord(character):04x}" for character in KEY)
ECHO = f"Invalid key: Bearer {KEY}"
ASK = {"messages": [{"role": "user", "content": "Of keys, in 8 words"}]}
CALLS: dict[str, dict[str, Any]] = {
    "mercury_chat_completion": ASK,
    "mercury_chat_stream": ASK,
    "mercury_fim_completion": {"prompt": "a", "suffix": "b", "model": "m"},
    "mercury_edit_completion": {"prompt": "<|code_to_edit|>a<|/code_to_edit|>", "model": "m"},
    "mercury_apply_edit": {"original": "a", "update": "b", "model": "m"},
    "mercury_next_edit": {"content": "a", "path": "a.py", "model": "m"},
    "mercury_decide": {"state": "s", "questions": [{"name": "q", "type": "noul"}], "model": "m"},
    "mercury_batch": {"prompts": ["one", "two"]},
    "mercury_list_models": {},
    "mercury_usage": {},
}
TOOL_CALL = {"index": 0, "id": KEY, "type": "function", "function": {"name": KEY, "arguments": f'["{KEY}"]'}}
ANSWER = completion(
    model=KEY,
    warning=[ECHO],
    answers={KEY: {"type": "choice", "choice": KEY, "probabilities": {KEY: 0.9}, "legend": {"1": ECHO}}},
    choices=[{"message": {"content": ECHO, "tool_calls": [TOOL_CALL]}, "finish_reason": KEY}],
)
CHUNKS = [
    {
        "model": KEY,
        "warning": ECHO,
        "choices": [{"delta": {"content": ECHO[:30], "tool_calls": [TOOL_CALL]}}],
    },
    {"choices": [{"delta": {"content": ECHO[30:]}, "finish_reason": KEY}]},
]
STREAM = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in CHUNKS) + b"data: [DONE]\n\n"
MODELS = {"data": [{"id": KEY, "owned_by": KEY, "supported_features": [KEY], "pricing": {"prompt": KEY}}]}


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged meanwhile."""
    root = logging.getLogger(logs.ROOT)
    before = (root.handlers[:], root.level, root.propagate)
    stream = io.StringIO()
    logs.configure("debug", "json", stream)
    yield stream
    root.handlers[:], root.level, root.propagate = before


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *(
            (status, {"error": {"message": ECHO, "param": KEY, "code": KEY}})
            for status in (400, 401, 404, 503)
        ),
        (429, {"error": ECHO}),
        (500, {"message": ECHO}),
        (200, ANSWER),
        (200, json.dumps(ANSWER).replace(KEY, ESCAPED).encode()),
        (200, {"error": {"message": ECHO}}),
        (200, STREAM),
        (200, STREAM.replace(KEY.encode(), ESCAPED.encode())),
        (200, STREAM.replace(b"[DONE]", json.dumps({"error": {"message": ECHO}}).encode())),
        (200, f"<html>{ECHO}</html>".encode()),
    ],
)
async def test_a_key_that_the_upstream_repeats_comes_out_nowhere(
    tmp_path: Path, log: io.StringIO, status: int, body: Any
) -> None:
    seen = ""
    async with answering(status, body, tmp_path, models=MODELS, LOG_CONTENT="1") as client:
        for tool, arguments in CALLS.items():
            seen += json.dumps(await client.call(tool, arguments, _meta={"progressToken": tool}))
        seen += json.dumps(await client.request("resources/read", {"uri": "mercury://models"}))
        seen += json.dumps(client.sent)

    written = log.getvalue()
    assert written.count('"event":"call"') >= len(CALLS)
    assert KEY not in seen + written
    assert "***" in seen


OF_PROVIDER, IN_FILE = "sk_of_provider_0123456789", "sk_in_file_0123456789abc"


@pytest.mark.parametrize("key", [OF_PROVIDER, IN_FILE])
@pytest.mark.parametrize("status", [200, 401])
async def test_the_key_of_a_route_comes_out_nowhere_either(
    tmp_path: Path, log: io.StringIO, key: str, status: int
) -> None:
    seen: list[bytes] = []
    (tmp_path / "key").write_text(IN_FILE)
    body = json.dumps(ANSWER if status == 200 else {"error": {"message": ECHO}}).replace(KEY, key).encode()
    async with one_answer(status, body, seen=seen) as url:
        routes = tmp_path / "routes.toml"
        own = f'key = "{key}"' if key == OF_PROVIDER else f"key_file = '{tmp_path / 'key'}'"
        routes.write_text(
            f'[providers.other]\nurl = "{url}"\n{own}\n[[routes]]\nmodel = "fast"\nto = ["other/m"]\n'
        )
        async with answering(
            200, completion(), tmp_path, MERCURY_ROUTES_FILE=str(routes), LOG_CONTENT="1"
        ) as client:
            answers = [
                await client.call(tool, {**CALLS[tool], "model": "fast"}, _meta={"progressToken": tool})
                for tool in ("mercury_chat_completion", "mercury_chat_stream", "mercury_batch")
            ]
            answers += [await client.call(tool) for tool in ("mercury_usage", "mercury_list_models")]
            said = json.dumps([client.sent, answers])

    assert seen, "the provider was asked"
    assert key not in said + log.getvalue()
    assert "***" in said


@pytest.mark.parametrize("header", ["{key}", "Bearer {key}"])
async def test_what_a_header_of_a_provider_carries_comes_out_nowhere_either(
    tmp_path: Path, log: io.StringIO, header: str
) -> None:
    key, seen = "gw_of_header_0123456789", list[bytes]()
    body = json.dumps({"error": {"message": f"Unknown caller {key}"}}).encode()
    async with one_answer(401, body, seen=seen) as url:
        routes = tmp_path / "routes.toml"
        routes.write_text(
            f'[providers.other]\nurl = "{url}"\nheaders = {{ "x-gateway" = "{header.format(key=key)}" }}\n'
            '[[routes]]\nmodel = "fast"\nto = ["other/m"]\n'
        )
        async with answering(
            200, completion(), tmp_path, MERCURY_ROUTES_FILE=str(routes), LOG_CONTENT="1"
        ) as client:
            answer = await client.call(
                "mercury_chat_completion", {**CALLS["mercury_chat_completion"], "model": "fast"}
            )
            said = json.dumps([client.sent, answer])

    assert seen, "the provider was asked"
    assert key not in said + log.getvalue()
    assert "***" in said


@given(st.text(max_size=20), st.lists(st.integers(1, 8), min_size=1), st.text(max_size=20))
async def test_however_a_key_is_cut_over_the_pieces_of_a_stream_it_is_found(
    before: str, sizes: list[int], after: str
) -> None:
    logs.hide(KEY)
    text = f"{before}{KEY}{after}"
    pieces: list[str] = []
    while text:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[:size])
        text = text[size:]
    answer = StreamedAnswer(is_diffusing=False, max_bytes=10_000)
    told = ""
    for piece in pieces:
        answer.feed(b"data: %b\n\n" % wire.write({"choices": [{"delta": {"content": piece}}]}), 0.0)
        told += answer.take_new_text()
    answer.feed(b'data: {"choices":[{"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n', 0.0)
    answer.end(0.0)
    told += answer.take_new_text()

    assert told == answer.text == f"{before}***{after}"


async def test_a_short_key_is_taken_out_only_where_it_stands_as_a_credential() -> None:
    logs.hide_credential("ollama")

    read = wire.make_reader(list[str])
    said = read(b'["Bearer ollama", "run ollama with a key", "Incorrect API key provided: ollama."]')

    assert said == ["Bearer ***", "run ollama with a key", "Incorrect API key provided: ***."]
