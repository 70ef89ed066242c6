"""The handshake: which revision is agreed on, and what is said with it."""

from typing import Any

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments
from bridgehead.mcp.revisions import HANDSHAKE, REVISIONS, Revision
from tests.support.checked import STATELESS, CheckedClient, connect

bridge: Bridge[None] = Bridge("handshakes", "2.1", instructions="Shake hands.")


@bridge.tool("Name the revision of this call.")
def revision(args: NoArguments, ctx: Context[None]) -> str:
    return str(ctx.revision)


async def initialized(client: CheckedClient, params: str) -> Any:
    data = f'{{"jsonrpc":"2.0","id":1,"method":"initialize"{params}}}'
    return (await client.raw(data.encode()))["result"]


@pytest.mark.parametrize("name", HANDSHAKE)
async def test_each_revision_of_the_handshake_era_is_agreed_to(name: str) -> None:
    async with connect(bridge, revision=STATELESS) as client:
        result = await initialized(client, f',"params":{{"protocolVersion":"{name}","capabilities":{{}}}}')

    assert result["protocolVersion"] == name
    assert result["serverInfo"] == {"name": "handshakes", "version": "2.1"}
    assert result["instructions"] == "Shake hands."


@pytest.mark.parametrize("params", ["", ',"params":{}', ',"params":null', ',"params":{"_meta":null}'])
async def test_an_initialize_without_parameters_gets_the_first_revision(params: str) -> None:
    async with connect(bridge, revision=STATELESS) as client:
        assert (await initialized(client, params))["protocolVersion"] == "2024-11-05"


@pytest.mark.parametrize("asked", ["2026-07-28", "2024-10-07", "1999-01-01", "3000-01-01", "", "latest"])
async def test_a_version_that_no_handshake_can_give_is_answered_with_the_newest_that_one_can(
    asked: str,
) -> None:
    async with connect(bridge, revision=STATELESS) as client:
        result = await initialized(client, f',"params":{{"protocolVersion":"{asked}"}}')

    assert result["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("agreed", REVISIONS.values(), ids=str)
async def test_a_handler_knows_the_revision_that_was_agreed_on(agreed: Revision) -> None:
    async with connect(bridge, revision=agreed) as client:
        assert await client.text("revision") == agreed.name


async def test_a_second_initialize_may_agree_on_another_revision() -> None:
    async with connect(bridge) as client:
        result = await client.request("initialize", {"protocolVersion": "2025-06-18"})

        assert result["protocolVersion"] == "2025-06-18"
        assert await client.text("revision") == "2025-06-18"


async def test_an_initialize_with_parameters_of_the_wrong_type_is_refused_with_the_place() -> None:
    async with connect(bridge, revision=STATELESS) as client:
        error = (
            await client.raw(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}')
        )["error"]

    assert error["code"] == -32602
    assert "protocolVersion must be a string" in error["message"]


async def test_both_eras_are_served_on_one_connection() -> None:
    async with connect(bridge, revision=STATELESS) as client:
        await initialized(client, ',"params":{"protocolVersion":"2025-03-26"}')
        plain = await client.raw(
            b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"revision"}}'
        )
        stateless = await client.text("revision")

    assert plain["result"]["content"][0]["text"] == "2025-03-26"
    assert stateless == "2026-07-28"


async def test_discovery_names_the_stateless_revision_and_what_is_offered() -> None:
    async with connect(bridge, revision=STATELESS) as client:
        result = await client.request("server/discover")

    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"logging": {}, "tools": {}}
    assert result["instructions"] == "Shake hands."
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


async def test_a_server_without_instructions_sends_none() -> None:
    silent: Bridge[None] = Bridge("silent", "1")
    async with connect(silent) as client, connect(silent, revision=STATELESS) as stateless:
        assert "instructions" not in client.sent[0]["result"]
        assert "instructions" not in await stateless.request("server/discover")
