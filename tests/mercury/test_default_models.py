"""With the documented setup every tool works: a default model that cannot answer is replaced, and says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import MODELS, NAMED, Simulator
from tests.mercury.process import environment, error_of
from tests.support.checked import CheckedClient, connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, FIM = "mercury_chat_completion", "mercury_fim_completion"
GAP = {"prompt": "def total(items):\n", "suffix": "\n    return total\n"}
ASK = {"messages": [{"role": "user", "content": "Of models, in 8 words"}]}
CALLS: list[tuple[str, dict[str, Any]]] = [
    (FIM, GAP),
    ("mercury_apply_edit", {"original": "a = 1\n", "update": "a = 2\n"}),
    ("mercury_next_edit", {"content": "a = 1\n", "path": "a.py"}),
    ("mercury_edit_completion", {"prompt": "<|code_to_edit|>a = 1<|/code_to_edit|>"}),
]
WITHOUT_CODER = tuple(model for model in MODELS if not model.id.startswith("mercury-coder"))
"""The models of a service that has retired the default one."""


@asynccontextmanager
async def documented(api: Simulator, folder: Path, **settings: str) -> AsyncIterator[CheckedClient]:
    """Connect to a bridge with a key and nothing else."""
    plain = {"MERCURY_MODEL": "", "MERCURY_FIM_MODEL": "", "MERCURY_EDIT_MODEL": ""}
    given = environment(api.url, folder, **{**plain, **settings})
    async with connect(make_bridge(MercurySettings(given))) as client:
        yield client


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_the_first_call_of_every_code_tool_is_answered(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    async with Simulator(models=WITHOUT_CODER) as api, documented(api, tmp_path) as client:
        result = await client.call(tool, arguments)

    structured = result["structuredContent"]
    assert structured["metadata"]["model"] == "mercury-edit-2"
    (note,) = structured["notes"]
    assert note.startswith("The default model mercury-coder-small cannot serve")
    assert "mercury-edit-2 answered" in note
    assert result["content"][1]["text"].splitlines()[0] == f"Note: {note}"


async def test_a_listed_default_that_cannot_edit_is_replaced_before_anything_is_sent(
    api: Simulator, tmp_path: Path
) -> None:
    async with documented(api, tmp_path) as client:
        result = await client.call("mercury_apply_edit", {"original": "a", "update": "b"})

    assert [request.body["model"] for request in api.requests.to("/edit/completions")] == ["mercury-edit-2"]
    assert "MERCURY_EDIT_MODEL" in result["structuredContent"]["notes"][0]


async def test_a_route_chooses_the_model_of_decisions(api: Simulator, tmp_path: Path) -> None:
    routes = tmp_path / "routes.toml"
    routes.write_text('[[routes]]\ntool = "mercury_decide"\nto = ["mercury/mercury-2"]\n')
    asked = {"state": {"sky": "rain"}, "questions": [{"name": "is_wet", "type": "noul"}]}
    async with documented(api, tmp_path, MERCURY_ROUTES_FILE=str(routes)) as client:
        decided = await client.call("mercury_decide", asked)
        talked = await client.call(CHAT, ASK)

    models = [result["structuredContent"]["metadata"]["model"] for result in (decided, talked)]
    assert models == ["mercury-2", "mercury-coder-small"]


async def test_a_retired_default_is_asked_for_once_and_then_replaced_at_once(tmp_path: Path) -> None:
    async with Simulator(models=WITHOUT_CODER) as api, documented(api, tmp_path) as client:
        results = [await client.call(CHAT, ASK) for _ in range(2)]
        asked = [request.body["model"] for request in api.requests.to("/chat/completions")]

    assert asked == ["mercury-coder-small", "mercury-3", "mercury-3"]
    for result in results:
        assert result["structuredContent"]["metadata"]["model"] == "mercury-3"
        assert "so mercury-3 answered" in result["structuredContent"]["notes"][0]


async def test_a_model_that_was_named_is_never_replaced(tmp_path: Path) -> None:
    async with Simulator(models=WITHOUT_CODER) as api, documented(api, tmp_path) as client:
        error = error_of(await client.call(CHAT, {**ASK, "model": "mercury-coder-small"}))
        asked = [request.body["model"] for request in api.requests.to("/chat/completions")]

    assert asked == ["mercury-coder-small"]
    assert error["code"] == "MODEL_NOT_FOUND"
    assert "Use one of: mercury-3" in error["message"]


async def test_only_an_allowed_model_takes_the_place_of_the_default(api: Simulator, tmp_path: Path) -> None:
    allowed = {"MERCURY_MODEL": "mercury-2", "MERCURY_ALLOWED_MODELS": "mercury-2,mercury-coder"}
    async with documented(api, tmp_path, **allowed) as client:
        filled = await client.call(FIM, GAP)

    assert filled["structuredContent"]["metadata"]["model"] == "mercury-coder"


@pytest.mark.parametrize("budget", ["", "1"])
async def test_a_prompt_too_long_for_the_default_goes_to_the_next_longer_model(
    api: Simulator, tmp_path: Path, budget: str
) -> None:
    async with documented(api, tmp_path, MERCURY_BUDGET_USD=budget) as client:
        api.faults.next(NAMED["context"])
        result = await client.call(CHAT, {**ASK, "max_tokens": 100})
        used = (await client.call("mercury_usage"))["structuredContent"]

    asked = [request.body["model"] for request in api.requests.to("/chat/completions")]
    assert asked == ["mercury-coder-small", "mercury-2"]
    assert result["structuredContent"]["metadata"]["model"] == "mercury-2"
    assert "context too short" in result["structuredContent"]["notes"][0]
    # The refused send was released, and the other one settled at the price of the model that answered.
    cost = result["structuredContent"]["metadata"]["cost_usd"]
    if budget:
        assert used["budget"]["committed_usd"] == pytest.approx(cost)


async def test_a_prompt_too_long_for_the_next_longer_model_goes_to_the_one_after(
    api: Simulator, tmp_path: Path
) -> None:
    async with documented(api, tmp_path) as client:
        api.faults.next(NAMED["context"], NAMED["context"])
        result = await client.call(CHAT, ASK)

    asked = [request.body["model"] for request in api.requests.to("/chat/completions")]
    assert asked == ["mercury-coder-small", "mercury-2", "mercury-2.5"]
    (note,) = result["structuredContent"]["notes"]
    assert note.startswith("The default model mercury-coder-small has a context too short")
    assert "mercury-2.5 answered" in note


async def test_a_prompt_too_long_for_a_named_model_is_an_error(api: Simulator, tmp_path: Path) -> None:
    async with documented(api, tmp_path) as client:
        api.faults.next(NAMED["context"])
        error = error_of(await client.call(CHAT, {**ASK, "model": "mercury-2"}))

    assert error["code"] == "CONTEXT_LENGTH_EXCEEDED"


async def test_a_default_without_a_substitute_is_an_error_that_lists_nothing(tmp_path: Path) -> None:
    only = (replace(MODELS[0], id="mercury-coder-small"),)
    async with Simulator(models=only) as api, documented(api, tmp_path) as client:
        api.faults.next(NAMED["context"])
        error = error_of(await client.call(CHAT, ASK))

    assert error["code"] == "CONTEXT_LENGTH_EXCEEDED"
