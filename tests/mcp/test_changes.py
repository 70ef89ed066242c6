"""Changes: how a client hears that a list or a resource changed, in both eras."""

from typing import Any

import pytest

from bridgehead.mcp import Bridge, Context, Limits, NoArguments
from bridgehead.mcp.revisions import HANDSHAKE, Revision
from tests.support.checked import CheckedClient, connect

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["c://a", "c://b"],
}


def make(**options: Any) -> Bridge[None]:
    settings = {"changing": {"tools", "prompts", "resources"}, "subscribable": True, **options}
    bridge: Bridge[None] = Bridge("changes", "1", **settings)

    @bridge.tool("Be there.")
    def tool(args: NoArguments, ctx: Context[None]) -> str:
        return "there"

    @bridge.prompt("Be there.")
    def prompt(args: NoArguments, ctx: Context[None]) -> str:
        return "there"

    @bridge.resource("c://a", name="a")
    def resource(ctx: Context[None]) -> str:
        return "there"

    return bridge


def change_all(bridge: Bridge[None]) -> None:
    bridge.changed.tools()
    bridge.changed.prompts()
    bridge.changed.resources()
    for uri in ("c://a", "c://b", "c://c"):
        bridge.changed.resource(uri)


def heard(client: CheckedClient) -> list[Any]:
    """Give what the client was told of changes, without the acknowledgement."""
    return [
        (message["method"], message.get("params", {}).get("uri"))
        for message in client.sent
        if message.get("method") in (TOOLS, PROMPTS, RESOURCES, UPDATED)
    ]


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

        assert heard(client) == [(TOOLS, None), (PROMPTS, None), (RESOURCES, None), (UPDATED, "c://a")]
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

        assert [uri for method, uri in heard(client) if method == UPDATED] == ["c://b"]


async def test_a_bridge_that_does_not_change_announces_nothing() -> None:
    bridge = make(changing=frozenset({"prompts"}), subscribable=False)
    async with connect(bridge) as client:
        capabilities = client.sent[0]["result"]["capabilities"]
        change_all(bridge)
        await client.inbox.of(PROMPTS)

        assert heard(client) == [(PROMPTS, None)]
        assert (capabilities["tools"], capabilities["resources"]) == ({}, {})
        assert (await client.error("resources/subscribe", {"uri": "c://a"}))["code"] == -32601


async def test_changes_that_wait_for_a_client_are_told_once() -> None:
    bridge = make()
    async with connect(bridge) as client:
        await client.request("resources/subscribe", {"uri": "c://a"})
        for _ in range(1000):
            change_all(bridge)
        await client.inbox.of(UPDATED)
        assert len(heard(client)) == 4
        bridge.changed.tools()
        await client.inbox.of(TOOLS, 2)
        assert len(heard(client)) == 5


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
