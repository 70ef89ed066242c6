"""Batches: handled a few at a time, bounded in what they answer, ended with their client."""

import asyncio
from typing import Any

import msgspec

from bridgehead.mcp import Bridge, Dispatcher, Limits, jsonrpc
from bridgehead.mcp.batches import CALLS_AT_ONCE
from bridgehead.mcp.connection import Connection, NullOutlet
from tests.support.waiting import PATIENCE


class Work:
    """A bridge whose calls are counted."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go_on = asyncio.Event()
        self.bridge: Bridge[None] = Bridge("work", "1.0")

        @self.bridge.tool
        def big(name: str, size: int = 10_000) -> str:
            """Answer at once with much."""
            self.begun.append(name)
            return "x" * size

        @self.bridge.tool
        async def later(name: str, size: int = 10_000) -> str:
            """Answer with much when told to."""
            self.begun.append(name)
            await self.go_on.wait()
            return "x" * size


async def connect(work: Work, limits: Limits) -> tuple[Dispatcher, Connection]:
    dispatcher, connection = Dispatcher(work.bridge, limits=limits), Connection(limits)
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    await ask(dispatcher, connection, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    return dispatcher, connection


async def ask(dispatcher: Dispatcher, connection: Connection, message: Any) -> Any:
    decoded = jsonrpc.decode(msgspec.json.encode(message))
    reply = await dispatcher.answer_message(decoded, connection, NullOutlet())
    return None if reply is None else msgspec.json.decode(reply)


def calls(tool: str, count: int) -> list[dict[str, Any]]:
    return [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": tool, "arguments": {"name": str(number)}},
        }
        for number in range(1, count + 1)
    ]


async def test_messages_after_too_many_answers_are_refused_and_not_done() -> None:
    work = Work()
    dispatcher, connection = await connect(work, Limits(batch_bytes=50_000))
    batch = [*calls("big", 100), {"jsonrpc": "2.0", "method": "notifications/initialized"}, 7]

    answers = await ask(dispatcher, connection, batch)

    done = [answer for answer in answers if "result" in answer]
    refused = [answer for answer in answers if "error" in answer]
    assert [answer["id"] for answer in answers[:100]] == list(range(1, 101))
    assert len(done) == len(work.begun) < 10
    assert "not done" in refused[0]["error"]["message"]
    assert "50000 bytes" in refused[0]["error"]["message"]
    assert refused[-1]["error"]["code"] == -32600  # the malformed one, with its own error


async def test_calls_that_wait_are_begun_a_few_at_a_time_and_count_when_they_end() -> None:
    work = Work()
    dispatcher, connection = await connect(work, Limits(batch_bytes=50_000))
    answering = asyncio.ensure_future(ask(dispatcher, connection, calls("later", 100)))
    async with asyncio.timeout(PATIENCE):
        while len(work.begun) < CALLS_AT_ONCE:
            await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(work.begun) == CALLS_AT_ONCE

    work.go_on.set()
    answers = await asyncio.wait_for(answering, PATIENCE)
    assert [answer["id"] for answer in answers] == list(range(1, 101))
    assert len(work.begun) <= 2 * CALLS_AT_ONCE
    assert not connection.in_flight


async def test_others_get_their_turn_while_a_batch_is_handled() -> None:
    work = Work()
    dispatcher, connection = await connect(work, Limits())
    answering = asyncio.ensure_future(ask(dispatcher, connection, calls("big", 1000)))
    turns = 0
    while not answering.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(answering.result()) == 1000
    assert turns > 1


async def test_a_batch_whose_client_is_gone_begins_nothing_more() -> None:
    work = Work()
    dispatcher, connection = await connect(work, Limits())
    answering = asyncio.ensure_future(ask(dispatcher, connection, calls("later", 100)))
    async with asyncio.timeout(PATIENCE):
        while len(work.begun) < CALLS_AT_ONCE:
            await asyncio.sleep(0)

    dispatcher.disconnect(connection)

    assert await asyncio.wait_for(answering, PATIENCE) is None
    assert len(work.begun) == CALLS_AT_ONCE
