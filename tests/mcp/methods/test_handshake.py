"""The handshake: what a server says of itself, and what it offers, in the words of each revision."""

from typing import Any

import pytest

from bridgehead.mcp import Bridge
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
