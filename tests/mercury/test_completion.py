"""A completion as a tool returns it, in the words of each revision of the protocol."""

from pathlib import Path

import pytest

from bridgehead.mcp.revisions import REVISIONS, Revision
from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from tests.mercury.process import KEY, error_of
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
    assert error["type"] == "validation_error"
