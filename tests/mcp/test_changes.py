"""Changes: how a client hears that a list or a resource changed, in both eras."""

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.revisions import HANDSHAKE, Revision
from tests.mcp.changing_bridge import (
    PROMPTS,
    RESOURCES,
    TOOLS,
    UPDATED,
    change_all,
    make,
    received_changes,
)
from tests.support.checked import connect


@pytest.mark.parametrize("revision", HANDSHAKE.values(), ids=str)
async def test_after_a_handshake_a_client_hears_of_lists_and_of_what_it_subscribed_to(
    revision: Revision,
) -> None:
    bridge = make()
    async with connect(bridge, revision=revision) as client:
        capabilities = client.sent[0]["result"]["capabilities"]
        assert await client.request("resources/subscribe", {"uri": "c://a"}) == {}
        change_all(bridge)
        await client.inbox.of(UPDATED)

        assert received_changes(client) == [
            (TOOLS, None),
            (PROMPTS, None),
            (RESOURCES, None),
            (UPDATED, "c://a"),
        ]
        assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
        assert capabilities["resources"] == {"subscribe": True, "listChanged": True}


async def test_a_client_that_unsubscribed_hears_nothing_more_of_the_resource() -> None:
    bridge = make()
    async with connect(bridge) as client:
        for uri in ("c://a", "c://b"):
            await client.request("resources/subscribe", {"uri": uri})
        assert await client.request("resources/unsubscribe", {"uri": "c://a"}) == {}
        assert await client.request("resources/unsubscribe", {"uri": "c://never"}) == {}
        change_all(bridge)
        await client.inbox.of(UPDATED)

        assert [uri for method, uri in received_changes(client) if method == UPDATED] == ["c://b"]


async def test_a_bridge_that_does_not_change_announces_nothing() -> None:
    bridge = make(changing=frozenset({"prompts"}), subscribable=False)
    async with connect(bridge) as client:
        capabilities = client.sent[0]["result"]["capabilities"]
        change_all(bridge)
        await client.inbox.of(PROMPTS)

        assert received_changes(client) == [(PROMPTS, None)]
        assert (capabilities["tools"], capabilities["resources"]) == ({}, {})
        assert (await client.error("resources/subscribe", {"uri": "c://a"}))["code"] == -32601


async def test_changes_that_wait_for_a_client_are_told_once() -> None:
    bridge = make()
    async with connect(bridge) as client:
        await client.request("resources/subscribe", {"uri": "c://a"})
        for _ in range(1000):
            change_all(bridge)
        await client.inbox.of(UPDATED)
        assert len(received_changes(client)) == 4
        bridge.changed.tools()
        await client.inbox.of(TOOLS, 2)
        assert len(received_changes(client)) == 5


async def test_a_client_has_only_so_many_subscriptions() -> None:
    async with connect(make(), limits=Limits(subscriptions=2)) as client:
        for uri in ("c://a", "c://b"):
            await client.request("resources/subscribe", {"uri": uri})
        error = await client.error("resources/subscribe", {"uri": "c://c"})
        assert (error["code"], "At most 2" in error["message"]) == (-32000, True)
        assert await client.request("resources/subscribe", {"uri": "c://a"}) == {}
        await client.request("resources/unsubscribe", {"uri": "c://a"})
        assert await client.request("resources/subscribe", {"uri": "c://c"}) == {}


async def test_two_clients_hear_of_the_same_change() -> None:
    bridge = make()
    async with connect(bridge) as first, connect(bridge) as second:
        bridge.changed.tools()
        assert len(await first.inbox.of(TOOLS)) == len(await second.inbox.of(TOOLS)) == 1
