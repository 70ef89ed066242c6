"""`mercury_embeddings`: offered where a provider makes vectors, and paid for like any call."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.settings import SettingError
from tests.mercury.one_answer import MODELS, answering
from tests.mercury.process import environment, error_of
from tests.support.checked import connect
from tests.support.fake_api import Answer, Request, fake_api

pytestmark = pytest.mark.asyncio(loop_scope="module")

EMBED = "mercury_embeddings"
TEXTS = {"input": ["one", "two"]}
PRICED = {"data": [{"id": "vectors", "pricing": {"prompt": "0.001", "completion": "0"}}]}


def vectors(**more: Any) -> dict[str, Any]:
    """Give an answer of OpenAI's form; the order of the data is not that of the texts."""
    data = [{"index": 1, "embedding": [0.5, 1]}, {"index": 0, "embedding": [0.25, -1.0]}]
    return {"data": data, "model": "vectors", "usage": {"prompt_tokens": 4, "total_tokens": 4}, **more}


async def test_it_is_offered_only_if_a_model_is_set() -> None:
    assert EMBED not in make_bridge(MercurySettings({})).tools
    assert EMBED in make_bridge(MercurySettings({"MERCURY_EMBEDDING_MODEL": "vectors"})).tools


async def test_each_text_has_its_vector_and_the_call_its_price(tmp_path: Path) -> None:
    seen: list[bytes] = []
    settings = {"MERCURY_EMBEDDING_MODEL": "vectors", "MERCURY_BUDGET_USD": "1"}
    async with answering(200, vectors(), tmp_path, models=PRICED, seen=seen, **settings) as client:
        result = await client.call(EMBED, {**TEXTS, "dimensions": 2})
        used = (await client.call("mercury_usage"))["structuredContent"]

    structured = result["structuredContent"]
    assert structured["embeddings"] == [[0.25, -1.0], [0.5, 1.0]]
    assert json.loads(result["content"][0]["text"]) == structured["embeddings"]
    assert seen[0].startswith(b"/v1/embeddings ")
    assert json.loads(seen[0].partition(b" ")[2]) == {**TEXTS, "dimensions": 2, "model": "vectors"}
    assert structured["metadata"]["cost_usd"] == used["budget"]["committed_usd"] == pytest.approx(0.004)


@pytest.mark.parametrize("data", [[{"index": 1, "embedding": [0.5]}], [{"embedding": "AAAA"}] * 2])
async def test_vectors_that_do_not_fit_the_texts_are_not_given_to_them(tmp_path: Path, data: Any) -> None:
    async with answering(200, vectors(data=data), tmp_path, MERCURY_EMBEDDING_MODEL="vectors") as client:
        error = error_of(await client.call(EMBED, TEXTS))

    assert error["code"] == "BAD_RESPONSE"
    assert str(data[0]["embedding"]) in error["content"]


async def test_a_provider_of_the_routes_file_makes_them(tmp_path: Path) -> None:
    async def respond(request: Request) -> Answer:
        body = MODELS if request.method == "GET" else vectors()
        return Answer(200, json.dumps(body).encode())

    async with fake_api(respond) as api:
        file = tmp_path / "routes.toml"
        file.write_text(f'[providers.local]\nurl = "{api.url}/v1"\n[[routes]]\nto = ["mercury/x"]')
        settings = {"MERCURY_ROUTES_FILE": str(file), "MERCURY_EMBEDDING_MODEL": "local/a/b"}
        given = environment("http://127.0.0.1:9/v1", tmp_path, **settings)
        async with connect(make_bridge(MercurySettings(given))) as client:
            result = await client.call(EMBED, TEXTS)

    assert result["structuredContent"]["metadata"]["provider"] == "local"
    (sent,) = [request for request in api.requests if request.method == "POST"]
    assert json.loads(sent.body)["model"] == "a/b"


async def test_an_answer_without_vectors_is_an_error_with_what_was_received(tmp_path: Path) -> None:
    body = {"data": [], "note": "none today"}
    async with answering(200, body, tmp_path, MERCURY_EMBEDDING_MODEL="vectors") as client:
        error = error_of(await client.call(EMBED, TEXTS))

    assert error["code"] == "BAD_RESPONSE"
    assert "none today" in error["content"]


@pytest.mark.parametrize("name", ["MERCURY_EMBEDDING_MODEL", "MERCURY_FINE_TUNING"])
async def test_a_provider_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    from bridgehead.mercury.calling.service import Service

    settings = MercurySettings({name: "nobody/m", "BRIDGEHEAD_STATE_DIR": str(tmp_path)})

    with pytest.raises(SettingError, match=f"{name}.*there are mercury"):
        Service(settings)
