"""The handshake: what a server says of itself, and what it offers, in the words of each revision."""

from typing import Any

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments, ProtocolError
from bridgehead.mcp.errors import MISSING_CAPABILITY
from bridgehead.mcp.revisions import HANDSHAKE, Revision
from tests.support.checked import STATELESS, connect
from tests.support.full_bridge import make_bridge


@pytest.mark.parametrize("revision", HANDSHAKE.values(), ids=HANDSHAKE)
async def test_a_revision_that_is_spoken_is_agreed_on(revision: Revision) -> None:
    async with connect(make_bridge()) as client:
        answer = await client.request("initialize", {"protocolVersion": revision.name})

    assert answer["protocolVersion"] == revision.name
    assert ("completions" in answer["capabilities"]) == revision.completions_capability
    assert {"tools", "prompts", "resources", "logging"} <= set(answer["capabilities"])


async def test_a_bridge_offers_nothing_that_it_does_not_have() -> None:
    empty: Bridge[None] = Bridge("empty", "1", logging=False)
    async with connect(empty) as client, connect(empty, revision=STATELESS) as stateless:
        hello = await client.request("initialize", {})
        found = await stateless.request("server/discover")

    assert (hello["capabilities"], found["capabilities"]) == ({}, {})
    assert "instructions" not in {**hello, **found}


async def test_instructions_are_told_in_both_eras() -> None:
    bridge: Bridge[None] = Bridge("told", "1", instructions="Begin with status.")
    async with connect(bridge) as client, connect(bridge, revision=STATELESS) as stateless:
        told: list[Any] = [
            await client.request("initialize", {}),
            await stateless.request("server/discover"),
        ]

    assert [one["instructions"] for one in told] == ["Begin with status."] * 2
    assert told[1]["supportedVersions"] == ["2026-07-28"]


async def test_a_level_that_does_not_exist_is_refused() -> None:
    async with connect(make_bridge()) as client:
        assert await client.request("logging/setLevel", {"level": "warning"}) == {}
        assert (await client.error("logging/setLevel", {"level": "loud"}))["code"] == -32602
        assert await client.request("ping") == {}


UI = "io.modelcontextprotocol/ui"
ONLY_STATELESS = "com.example/stateless-only"


def make_extended_bridge() -> Bridge[None]:
    bridge: Bridge[None] = Bridge("extended", "1")
    bridge.extension(UI, {"mimeTypes": ["text/html"]})
    bridge.extension(ONLY_STATELESS, handshake=False)

    @bridge.tool("Tell what the client declared.")
    def declared(_args: NoArguments, ctx: Context[None]) -> str:
        return ",".join(ctx.require_extension(UI).get("mimeTypes", []))

    return bridge


async def test_extensions_are_declared_in_both_eras_but_not_those_that_the_handshake_era_lacks() -> None:
    bridge = make_extended_bridge()
    async with connect(bridge) as client, connect(bridge, revision=STATELESS) as stateless:
        hello = await client.request("initialize", {})
        found = await stateless.request("server/discover")

    assert hello["capabilities"]["extensions"] == {UI: {"mimeTypes": ["text/html"]}}
    assert found["capabilities"]["extensions"] == {UI: {"mimeTypes": ["text/html"]}, ONLY_STATELESS: {}}


@pytest.mark.parametrize("revision", [*HANDSHAKE.values(), STATELESS], ids=str)
async def test_a_handler_reads_what_the_client_declared(revision: Revision) -> None:
    capabilities = {"extensions": {UI: {"mimeTypes": ["a", "b"]}}}
    async with connect(make_extended_bridge(), revision=revision, capabilities=capabilities) as client:
        result = await client.call("declared")

    assert result["content"][0]["text"] == "a,b"


@pytest.mark.parametrize("declared", [{}, {"extensions": {}}, {"extensions": {UI: 3}}, {"extensions": 3}])
async def test_what_needs_an_undeclared_extension_is_refused_by_its_name(declared: dict[str, Any]) -> None:
    async with connect(make_extended_bridge(), revision=STATELESS) as client:
        client.capabilities = declared
        with pytest.raises(ProtocolError, match=UI) as refused:
            await client.call("declared")
    async with connect(make_extended_bridge()) as older:
        result = await older.call("declared")

    assert refused.value.code == MISSING_CAPABILITY
    assert refused.value.data == {"requiredCapabilities": {"extensions": {UI: {}}}}
    assert result["isError"]
    assert UI in result["content"][0]["text"]


async def test_an_extension_of_one_request_does_not_count_for_the_next() -> None:
    async with connect(make_extended_bridge(), revision=STATELESS) as client:
        client.capabilities = {"extensions": {UI: {}}}
        await client.call("declared")
        client.capabilities = {}
        with pytest.raises(ProtocolError, match="not declared"):
            await client.call("declared")


async def test_a_contract_is_kept_to_the_letter_by_declaring_no_extension_to_its_clients() -> None:
    bridge: Bridge[None] = Bridge("strict", "1", contract_revision="2024-11-05")
    bridge.extension(UI)
    async with connect(bridge) as client:
        old = await client.request("initialize", {"protocolVersion": "2024-11-05"})
        new = await client.request("initialize", {"protocolVersion": "2025-06-18"})

    assert "extensions" not in old["capabilities"]
    assert new["capabilities"]["extensions"] == {UI: {}}


@pytest.mark.parametrize("name", ["ui", "/ui", "com.example/"])
def test_an_extension_needs_a_prefix_and_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of an extension"):
        Bridge("wrong", "1").extension(name)
