"""A completion as a tool returns it, in the words of each revision of the protocol."""

from pathlib import Path

import pytest

from bridgehead.mcp.revisions import REVISIONS, Revision
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from tests.mercury.process import KEY, environment, error_of
from tests.support.checked import connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of shapes, in 8 words"}]}


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)
async def test_every_revision_is_served(api: Simulator, tmp_path: Path, revision: Revision) -> None:
    environment = {"MERCURY_API_URL": api.url, "MERCURY_API_KEY": KEY, "BRIDGEHEAD_STATE_DIR": str(tmp_path)}
    async with connect(make_bridge(MercurySettings(environment)), revision=revision) as client:
        chat = await client.call(CHAT, ASK)
        stream = await client.call("mercury_chat_stream", ASK, _meta={"progressToken": 1})
        error = error_of(await client.call(CHAT, {}))

    for result in (chat, stream):
        held = result["structuredContent"] if revision.structured_output else result["_meta"]
        assert held["metadata"]["finish_reason"] == "stop"
        assert result["metadata"] == held["metadata"]  # where the contract has it
    assert error["type"] == "validation_error"


@pytest.mark.parametrize("tool", [CHAT, "mercury_chat_stream"])
async def test_an_answer_that_was_cut_says_so_in_a_second_block(
    api: Simulator, tmp_path: Path, tool: str
) -> None:
    async with connect(make_bridge(MercurySettings(environment(api.url, tmp_path)))) as client:
        result = await client.call(tool, {**ASK, "max_tokens": 3})

    answer, notice = result["content"]
    assert answer["text"] == result["structuredContent"]["content"]
    assert "max_tokens" in notice["text"]
    assert notice["text"].splitlines()[0] == f"Note: {result['structuredContent']['incomplete']}"
    assert result["structuredContent"]["notes"] == [result["structuredContent"]["incomplete"]]


async def test_an_edit_that_was_cut_is_an_error_with_what_came(api: Simulator, tmp_path: Path) -> None:
    edit = {"prompt": "<|code_to_edit|>a = 1\nb = 2\nc = 3<|/code_to_edit|>", "max_tokens": 2}
    async with connect(make_bridge(MercurySettings(environment(api.url, tmp_path)))) as client:
        error = error_of(await client.call("mercury_edit_completion", edit))

    assert error["code"] == "EDIT_INCOMPLETE"
    assert error["content"].startswith("a =")
    assert "do not write it over the original" in error["message"]


async def test_the_published_schema_names_the_default_model(tmp_path: Path) -> None:
    settings = environment("http://127.0.0.1:9/v1", tmp_path, MERCURY_MODEL="house-model")
    async with connect(make_bridge(MercurySettings(settings))) as client:
        listed = {tool["name"]: tool["inputSchema"] for tool in (await client.request("tools/list"))["tools"]}

    assert listed[CHAT]["properties"]["model"]["default"] == "house-model"
    assert listed["mercury_batch"]["properties"]["model"]["default"] == "house-model"
    assert listed["mercury_edit_completion"]["properties"]["model"]["default"] == "mercury-edit-2"
