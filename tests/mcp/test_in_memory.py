"""The memory client: what tests of any bridge can rely on."""

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments, ProtocolError, in_memory
from bridgehead.mcp.revisions import V2025_11_25, V2026_07_28, Revision

bridge: Bridge[None] = Bridge("memory", "1")


@bridge.tool("Ask for the roots.")
async def roots(args: NoArguments, ctx: Context[None]) -> str:
    return str(len(await ctx.roots()))


async def test_a_client_keeps_everything_that_it_was_sent() -> None:
    async with in_memory.connect(bridge) as client:
        await client.request("ping")

        assert [message["id"] for message in client.sent] == [1, 2]
        assert client.sent[0]["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("revision", [V2025_11_25, V2026_07_28], ids=str)
async def test_an_error_answer_is_raised(revision: Revision) -> None:
    async with in_memory.connect(bridge, revision=revision) as client:
        with pytest.raises(ProtocolError, match="Unknown tool: nothing") as refused:
            await client.call("nothing")

    assert (refused.value.code, refused.value.data) == (-32602, {"tools": ["roots"]})


async def test_a_client_may_take_its_time_to_answer() -> None:
    async def answering(method: str, params: object) -> object:
        return {"roots": []}

    async with in_memory.connect(bridge, capabilities={"roots": {}}, answering=answering) as client:
        assert (await client.call("roots"))["content"][0]["text"] == "0"
