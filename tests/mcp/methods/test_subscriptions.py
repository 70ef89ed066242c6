"""Subscriptions of the stateless era: a stream of the changes that a client asks for."""

from typing import Any

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.calls.params import META_PREFIX
from tests.mcp.changing_bridge import (
    ACKNOWLEDGED,
    EVERYTHING,
    PROMPTS,
    RESOURCES,
    TOOLS,
    UPDATED,
    change_all,
    make,
    received_changes,
)
from tests.support.checked import STATELESS, connect


async def test_a_listen_stream_is_acknowledged_first_and_carries_its_id() -> None:
    bridge = make()
    async with connect(bridge, revision=STATELESS) as client:
        listen_id, stream = client.start("subscriptions/listen", {"notifications": EVERYTHING})
        await client.inbox.of(ACKNOWLEDGED)
        change_all(bridge)
        await client.inbox.of(UPDATED, 2)
        meta = {META_PREFIX + "subscriptionId": listen_id}

        assert client.sent[0] == {
            "jsonrpc": "2.0",
            "method": ACKNOWLEDGED,
            "params": {"_meta": meta, "notifications": EVERYTHING},
        }
        assert all(message["params"]["_meta"] == meta for message in client.sent)
        assert [method for method, _ in received_changes(client)] == [
            TOOLS,
            PROMPTS,
            RESOURCES,
            UPDATED,
            UPDATED,
        ]
        assert not stream.done()


@pytest.mark.parametrize(
    ("wanted", "granted", "told"),
    [
        ({}, {}, []),
        ({"toolsListChanged": True}, {"toolsListChanged": True}, [(TOOLS, None)]),
        (
            {"promptsListChanged": True, "toolsListChanged": False},
            {"promptsListChanged": True},
            [(PROMPTS, None)],
        ),
        ({"resourceSubscriptions": ["c://b"]}, {"resourceSubscriptions": ["c://b"]}, [(UPDATED, "c://b")]),
        ({"resourceSubscriptions": []}, {"resourceSubscriptions": []}, []),
    ],
)
async def test_a_stream_carries_only_what_its_filter_names(wanted: Any, granted: Any, told: Any) -> None:
    bridge = make()
    async with connect(bridge, revision=STATELESS) as client:
        _, stream = client.start("subscriptions/listen", {"notifications": wanted})
        (acknowledged,) = await client.inbox.of(ACKNOWLEDGED)
        change_all(bridge)
        client.dispatcher.end_streams()
        await stream

        assert acknowledged["params"]["notifications"] == granted
        assert received_changes(client) == told


async def test_a_stream_is_granted_only_what_the_bridge_announces() -> None:
    bridge = make(changing=frozenset({"tools"}), subscribable=False)
    async with connect(bridge, revision=STATELESS) as client:
        client.start("subscriptions/listen", {"notifications": EVERYTHING})
        (acknowledged,) = await client.inbox.of(ACKNOWLEDGED)

    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}


async def test_a_stream_that_the_server_ends_is_answered_with_its_id() -> None:
    bridge = make()
    async with connect(bridge, revision=STATELESS) as client:
        listen_id, stream = client.start("subscriptions/listen", {"notifications": EVERYTHING})
        await client.inbox.of(ACKNOWLEDGED)
        bridge.changed.tools()
        client.dispatcher.end_streams()
        answer = await stream

        assert answer["result"]["_meta"][META_PREFIX + "subscriptionId"] == listen_id
        assert answer["result"]["resultType"] == "complete"
        assert received_changes(client) == [(TOOLS, None)]
        assert (client.dispatcher.streams, client.connection.in_flight, client.connection.parked) == (
            set(),
            {},
            0,
        )


async def test_a_stream_that_the_client_cancels_ends_without_an_answer() -> None:
    bridge = make()
    async with connect(bridge, revision=STATELESS) as client:
        listen_id, stream = client.start("subscriptions/listen", {"notifications": EVERYTHING})
        await client.inbox.of(ACKNOWLEDGED)
        await client.notify("notifications/cancelled", {"requestId": listen_id})

        assert await stream is None
        assert (client.dispatcher.streams, client.connection.in_flight, client.connection.parked) == (
            set(),
            {},
            0,
        )
        bridge.changed.tools()
        assert received_changes(client) == []


async def test_there_are_only_so_many_streams() -> None:
    async with connect(make(), revision=STATELESS, limits=Limits(listen_streams=1)) as client:
        first_id, first = client.start("subscriptions/listen", {"notifications": {}})
        await client.inbox.of(ACKNOWLEDGED)
        error = await client.error("subscriptions/listen", {"notifications": {}})
        assert (error["code"], "At most 1" in error["message"]) == (-32000, True)
        await client.notify("notifications/cancelled", {"requestId": first_id})
        await first
        client.start("subscriptions/listen", {"notifications": {}})
        assert len(await client.inbox.of(ACKNOWLEDGED, 2)) == 2


async def test_a_stream_has_only_so_many_subscriptions_and_says_which() -> None:
    async with connect(make(), revision=STATELESS, limits=Limits(subscriptions=1)) as client:
        client.start("subscriptions/listen", {"notifications": EVERYTHING})
        (acknowledged,) = await client.inbox.of(ACKNOWLEDGED)

    assert acknowledged["params"]["notifications"]["resourceSubscriptions"] == ["c://a"]


async def test_a_listen_without_a_filter_is_refused() -> None:
    async with connect(make(), revision=STATELESS) as client:
        assert (await client.error("subscriptions/listen"))["code"] == -32602
