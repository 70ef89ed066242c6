"""Batches: several messages in one array, in the one revision that has them."""

import asyncio

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.revisions import HANDSHAKE, V2025_03_26, Revision
from tests.mcp.gate import STATELESS_META, Gate, asked, encoded
from tests.support.checked import STATELESS, connect


async def test_a_batch_is_answered_with_one_array_in_its_order() -> None:
    gate = Gate()
    gate.open.set()
    batch = [
        asked("slow", "tools/call", name="wait"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        asked("fast", "tools/call", name="double", arguments={"number": 21}),
        asked("hello", "initialize"),
        asked("wrong", "nonsense"),
        [asked("inner", "ping")],
        17,
    ]
    async with connect(gate.bridge, revision=V2025_03_26) as client:
        answers = await client.raw(encoded(batch))

        assert [answer["id"] for answer in answers] == ["slow", "fast", "hello", "wrong", None, None]
        assert answers[0]["result"]["content"][0]["text"] == "through"
        assert answers[1]["result"]["content"][0]["text"] == "42"
        assert [answer["error"]["code"] for answer in answers[2:]] == [-32600, -32601, -32600, -32600]
        assert not client.connection.in_flight


async def test_a_batch_of_notifications_gets_no_answer() -> None:
    async with connect(Gate().bridge, revision=V2025_03_26) as client:
        batch = [{"jsonrpc": "2.0", "method": "notifications/initialized"}] * 2

        assert await client.raw(encoded(batch)) is None


async def test_a_request_of_a_batch_that_is_cancelled_is_left_out_of_the_array() -> None:
    gate = Gate()
    async with connect(gate.bridge, revision=V2025_03_26) as client:
        batch = [asked("held", "tools/call", name="wait"), asked("other", "ping")]
        waiting = asyncio.ensure_future(client.raw(encoded(batch)))
        await gate.reached.wait()
        await client.notify("notifications/cancelled", {"requestId": "held"})

        assert [answer["id"] for answer in await waiting] == ["other"]
        assert not client.connection.in_flight


async def test_a_batch_whose_requests_are_all_cancelled_gets_no_answer() -> None:
    gate = Gate()
    async with connect(gate.bridge, revision=V2025_03_26) as client:
        waiting = asyncio.ensure_future(client.raw(encoded([asked("held", "tools/call", name="wait")])))
        await gate.reached.wait()
        await client.notify("notifications/cancelled", {"requestId": "held"})

        assert await waiting is None


async def test_a_batch_has_no_more_messages_than_requests_may_be_in_flight() -> None:
    async with connect(Gate().bridge, revision=V2025_03_26, limits=Limits(requests_in_flight=2)) as client:
        answer = await client.raw(encoded([asked(number, "ping") for number in range(3)]))

        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert "2 messages" in answer["error"]["message"]
        assert len(await client.raw(encoded([asked(number, "ping") for number in range(2)]))) == 2


@pytest.mark.parametrize("revision", [r for r in HANDSHAKE.values() if r != V2025_03_26], ids=str)
async def test_a_batch_is_refused_where_the_revision_has_none(revision: Revision) -> None:
    async with connect(Gate().bridge, revision=revision) as client:
        answer = await client.raw(encoded([asked(1, "ping"), asked(2, "ping")]))

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "2025-03-26" in answer["error"]["message"]


async def test_a_batch_before_initialize_and_in_the_stateless_era_is_refused() -> None:
    async with connect(Gate().bridge, revision=STATELESS) as client:
        answer = await client.raw(encoded([asked(1, "tools/list", _meta=STATELESS_META)]))

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
