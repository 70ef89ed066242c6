"""The ten provider configurations of docs/mercury.md, each against a server that behaves so."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from tests.mercury.one_answer import completion
from tests.mercury.process import KEY, environment, error_of
from tests.support.checked import CheckedClient, connect
from tests.support.fake_api import Answer, FakeApi, Request, fake_api

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = (Path(__file__).parents[2] / "docs" / "mercury.md").read_text(encoding="utf-8")
CONFIGURATIONS = {
    name: block
    for block in re.findall(r"```toml\n(.*?)```", DOCUMENT.partition("### Ten providers")[2], re.DOTALL)
    for name in re.findall(r"\[providers\.(\w+)\]", block)
}
CHAT, STREAM, FIM = "mercury_chat_completion", "mercury_chat_stream", "mercury_fim_completion"
OWN_KEY = "sk_of_the_provider_0123456789"
GAP = {"prompt": "def total(items):\n", "suffix": "\n    return total\n"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
NOT_FOUND = Answer(404, json.dumps({"detail": "Not Found"}).encode())
Behave = Callable[[Request, dict[str, Any]], Answer | dict[str, Any] | list[dict[str, Any]]]
"""Answers a request: with an answer, a JSON body, or the chunks of a stream."""


def ask(model: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Of providers, in 8 words"}], "model": model, **more}


def chunk(content: str | None = None, end: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"delta": {"content": content, **delta}, "finish_reason": end}]}


@asynccontextmanager
async def provider(
    name: str, behave: Behave, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[CheckedClient, FakeApi]]:
    """Connect to a bridge with the documented configuration, whose address is that of a fake server."""

    async def respond(request: Request) -> Answer:
        answer = NOT_FOUND if request.method == "GET" else behave(request, json.loads(request.body))
        if isinstance(answer, Answer):
            return answer
        if isinstance(answer, dict):
            return Answer(200, json.dumps(answer).encode())
        events = [f"data: {json.dumps(one)}\n\n" for one in answer]
        return Answer(200, "".join([*events, "data: [DONE]\n\n"]).encode())

    async with fake_api(respond) as api:
        text = re.sub(r'url = "https?://[^/"]+', f'url = "{api.url}', CONFIGURATIONS[name])
        file = folder / "routes.toml"
        file.write_text(text, encoding="utf-8")
        for variable in re.findall(r'key_env = "(\w+)"', text):
            monkeypatch.setenv(variable, OWN_KEY)
        settings = {"MERCURY_ROUTES_FILE": str(file), "MERCURY_FIM_MODEL": "", "MERCURY_MAX_RETRIES": "0"}
        given = environment("http://127.0.0.1:9/v1", folder, **settings)
        async with connect(make_bridge(MercurySettings(given))) as client:
            yield client, api


def posts(api: FakeApi) -> list[Request]:
    return [request for request in api.requests if request.method == "POST"]


def text_of(result: Any) -> str:
    assert not result.get("isError"), result["content"][0]["text"]
    text: str = result["content"][0]["text"]
    return text


async def test_ten_providers_are_documented() -> None:
    assert len(CONFIGURATIONS) == 10


async def test_openai_gets_only_the_fields_that_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer | list[dict[str, Any]]:
        if request.headers["authorization"] != f"Bearer {OWN_KEY}":
            return Answer(401, b'{"error": {"message": "Incorrect API key"}}')
        if unknown := {"diffusing", "realtime"} & body.keys():
            message = f"Unrecognized request argument supplied: {unknown}"
            return Answer(400, json.dumps({"error": {"message": message}}).encode())
        return [chunk("One"), chunk(" two"), chunk(end="stop"), {"choices": [], "usage": USAGE}]

    asked = ask("gpt", diffusing=True, realtime=True, reasoning_effort="low")
    async with provider("openai", behave, tmp_path, monkeypatch) as (client, api):
        result = await client.call(STREAM, asked)

    # Not diffusing, so the pieces add up.
    assert text_of(result) == "One two"
    (sent,) = posts(api)
    assert sent.path == "/v1/chat/completions"
    assert json.loads(sent.body)["reasoning_effort"] == "low"
    (note,) = result["structuredContent"]["notes"]
    assert note == "Not sent, because the provider openai does not know it: diffusing, realtime."


async def test_azure_gets_its_version_and_its_key_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer | list[dict[str, Any]]:
        if request.headers.get("api-key") != OWN_KEY or "authorization" in request.headers:
            return Answer(401, b'{"error": {"code": "401", "message": "Access denied"}}')
        if not request.path.endswith("/chat/completions?api-version=2024-10-21"):
            return Answer(404, b'{"error": {"code": "404", "message": "Resource not found"}}')
        first = {"choices": [], "model": "", "prompt_filter_results": [{"prompt_index": 0}]}
        return [first, chunk("Hello"), chunk(end="stop"), {"choices": [], "usage": USAGE}]

    async with provider("azure", behave, tmp_path, monkeypatch) as (client, api):
        assert text_of(await client.call(STREAM, ask("azure"))) == "Hello"

    assert posts(api)[0].path.startswith("/openai/deployments/gpt-4o/chat/completions?")


async def test_openrouter_gets_its_headers_and_its_cost_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        if "slow" in body["messages"][0]["content"]:
            return {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-min"}}
        return completion(usage={**USAGE, "cost": 0.0125})

    slow = ask("router") | {"messages": [{"role": "user", "content": "slow"}]}
    async with provider("openrouter", behave, tmp_path, monkeypatch) as (client, api):
        result = await client.call(CHAT, ask("router"))
        error = error_of(await client.call(CHAT, slow))

    headers = posts(api)[0].headers
    assert (headers["http-referer"], headers["x-title"]) == ("https://example.org", "Bridgehead")
    assert json.loads(posts(api)[0].body)["model"] == "inception/mercury"
    assert result["structuredContent"]["metadata"]["cost_usd"] == 0.0125
    assert "(429): Rate limit exceeded: free-models-per-min." in error["message"]


async def test_the_usage_of_a_groq_stream_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(request: Request, body: dict[str, Any]) -> list[dict[str, Any]]:
        return [chunk("Hello"), {**chunk(end="stop"), "x_groq": {"id": "req_1", "usage": USAGE}}]

    async with provider("groq", behave, tmp_path, monkeypatch) as (client, _):
        result = await client.call(STREAM, ask("groq"))

    assert text_of(result) == "Hello"
    assert result["structuredContent"]["metadata"]["usage"] == USAGE


async def test_tool_calls_of_gemini_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(request: Request, body: dict[str, Any]) -> list[dict[str, Any]]:
        calls = [
            {"function": {"name": name, "arguments": "{}"}, "id": "", "type": "function"}
            for name in ("get_a", "get_b")
        ]
        return [chunk(tool_calls=[call]) for call in calls] + [chunk(end="stop")]

    async with provider("gemini", behave, tmp_path, monkeypatch) as (client, api):
        result = await client.call(STREAM, ask("gemini"))

    named = [call["function"]["name"] for call in result["structuredContent"]["tool_calls"]]
    assert named == ["get_a", "get_b"]
    assert posts(api)[0].path == "/v1beta/openai/chat/completions"


async def test_mistral_fills_gaps_at_its_own_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer | dict[str, Any]:
        if request.path != "/v1/fim/completions":
            return NOT_FOUND
        parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "    total = 0"}]
        return completion(choices=[{"message": {"content": parts}, "finish_reason": "stop"}])

    async with provider("mistral", behave, tmp_path, monkeypatch) as (client, api):
        assert text_of(await client.call(FIM, GAP)) == "    total = 0"

    assert json.loads(posts(api)[0].body)["model"] == "codestral-latest"


async def test_mistral_gets_no_stream_options_from_its_first_refusal_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer | list[dict[str, Any]]:
        if "stream_options" in body:
            wrong = {"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"]}
            refusal = {"detail": [{**wrong, "msg": "Extra inputs are not permitted", "input": True}]}
            return Answer(422, json.dumps({"object": "error", "message": refusal}).encode())
        return [chunk("It streams"), {**chunk(end="stop"), "usage": USAGE}]

    async with provider("mistral", behave, tmp_path, monkeypatch) as (client, api):
        results = [await client.call(STREAM, ask("mistral")) for _ in range(2)]

    assert [text_of(result) for result in results] == ["It streams"] * 2
    assert results[0]["structuredContent"]["metadata"]["usage"]["total_tokens"] == 7
    assert ["stream_options" in json.loads(request.body) for request in posts(api)] == [True, False, False]


async def test_a_refusal_that_names_stream_options_for_ever_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer:
        return Answer(400, b'{"error": {"message": "stream_options is wrong"}}')

    async with provider("mistral", behave, tmp_path, monkeypatch) as (client, api):
        error = error_of(await client.call(STREAM, ask("mistral")))

    assert error["code"] == "INVALID_REQUEST"
    assert len(posts(api)) == 2


async def test_the_reasoning_of_deepseek_comes_beside_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            chunk(None, reasoning_content="First "),
            chunk(None, reasoning_content="think."),
            chunk("Hello", reasoning_content=None),
            chunk("", end="stop"),
        ]

    async with provider("deepseek", behave, tmp_path, monkeypatch) as (client, _):
        result = await client.call(STREAM, ask("deepseek"))

    assert text_of(result) == "Hello"
    assert result["structuredContent"]["reasoning"] == "First think."


async def test_a_prompt_too_long_for_one_model_of_vllm_goes_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer | dict[str, Any]:
        assert request.headers["authorization"] == "Bearer EMPTY"
        if body["model"] == "small":
            message = (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
            )
            refusal = {"object": "error", "message": message, "type": "BadRequestError", "code": 400}
            return Answer(400, json.dumps(refusal).encode())
        return completion(model="large")

    async with provider("vllm", behave, tmp_path, monkeypatch) as (client, api):
        result = await client.call(CHAT, ask("local"))

    assert result["structuredContent"]["metadata"]["model"] == "large"
    assert [json.loads(request.body)["model"] for request in posts(api)] == ["small", "large"]


@pytest.mark.parametrize(
    "missing",
    [
        NOT_FOUND,
        Answer(404, b'{"error": {"message": "Invalid URL (POST /v1/fim/completions), see models"}}'),
        Answer(200, b'{"error": "Unexpected endpoint or method. (POST /v1/fim/completions)"}'),
    ],
    ids=["as LiteLLM says it", "with its path, as OpenAI", "with 200, as LM Studio"],
)
async def test_litellm_fills_gaps_by_completions_and_is_asked_there_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: Answer
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer | dict[str, Any]:
        if request.path != "/v1/completions":
            return missing
        return {
            "model": "code",
            "choices": [{"text": "    total = 0", "finish_reason": "stop"}],
            "usage": USAGE,
        }

    async with provider("litellm", behave, tmp_path, monkeypatch) as (client, api):
        texts = [text_of(await client.call(FIM, GAP)) for _ in range(2)]

    assert texts == ["    total = 0"] * 2
    paths = [request.path for request in posts(api)]
    assert paths == ["/v1/fim/completions", "/v1/completions", "/v1/completions"]
    # The defaults of a fill-in, which `/completions` does not have.
    body = json.loads(posts(api)[1].body)
    assert body == {"stop": ["\n\n", "\n \n"], "max_tokens": 512, **GAP, "model": "code"}


async def test_ollama_has_its_own_time_and_may_leave_out_model_and_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        return completion(model=None, usage=None)

    async with provider("ollama", behave, tmp_path, monkeypatch) as (client, api):
        result = await client.call(CHAT, ask("ollama"))
        (lifespan,) = client.dispatcher.lifespans.values()
        seconds = lifespan.value.providers["ollama"].request_seconds

    assert text_of(result) == "hi"
    assert posts(api)[0].headers["authorization"] == "Bearer ollama"
    assert seconds == 120


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(500, b'{"error": "out of memory"}'), "The provider groq failed (500): out of memory."),
        (Answer(401, b'{"error": "no such key"}'), "Set a valid key (GROQ_API_KEY);"),
        (Answer(307), "Check the url of the provider groq in the routes file:"),
        (Answer(200, b"hello"), "The answer of the provider groq cannot be used"),
        (
            Answer(200, b'{"error": "out of memory"}'),
            "The provider groq broke the answer off: out of memory.",
        ),
        (
            Answer(404, b'{"error": {"message": "The model is gone", "code": "model_not_found"}}'),
            "The provider groq has no model 'llama-3.3-70b-versatile' for this call: The model is gone.",
        ),
    ],
    ids=["status", "key", "redirect", "unusable", "error inside", "model"],
)
async def test_a_provider_that_fails_is_named_with_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, said: str
) -> None:
    def behave(request: Request, body: dict[str, Any]) -> Answer:
        return answer

    async with provider("groq", behave, tmp_path, monkeypatch) as (client, _):
        error = error_of(await client.call(CHAT, ask("groq")))

    assert said in error["message"]
    assert "MERCURY_API" not in error["message"]
    assert KEY not in error["message"]


async def test_a_missing_key_names_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        return completion()

    async with provider("groq", behave, tmp_path, monkeypatch):
        pass
    monkeypatch.delenv("GROQ_API_KEY")
    given = environment("http://127.0.0.1:9/v1", tmp_path, MERCURY_ROUTES_FILE=str(tmp_path / "routes.toml"))
    async with connect(make_bridge(MercurySettings(given))) as client:
        error = error_of(await client.call(CHAT, ask("groq")))

    assert error["code"] == "MISSING_API_KEY"
    assert "GROQ_API_KEY" in error["message"]
