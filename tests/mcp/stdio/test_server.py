"""The stdio server: when it reads, in which order it writes, and what it says after the end of input."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.mcp import Arguments, Bridge, Context, Limits, NoArguments
from bridgehead.mcp.connection import Connection
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.stdio import server as stdio_server
from bridgehead.mcp.stdio.descriptors import count_unread
from bridgehead.mcp.stdio.pipes import open_output
from bridgehead.mcp.stdio.server import Lines, StdioServer, TooLong
from tests.support.messages import call, request, stateless
from tests.support.waiting import PATIENCE, until


class Source:
    """An input that is handed its bytes by the test."""

    def __init__(self) -> None:
        self.is_reading = True
        self.feed: Callable[[bytes], None]

    def start(self, received: Callable[[bytes], None]) -> None:
        self.feed = received

    def pause(self) -> None:
        self.is_reading = False

    def resume(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        """Nothing is held."""


def is_paused(source: Source) -> bool:
    return not source.is_reading


class Reader:
    """An output whose reader takes nothing until it is told to."""

    is_broken = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.is_read = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)

    @property
    def unread(self) -> int:
        return self.size

    def flush(self) -> None:
        if self.is_read.is_set():
            self.size = 0

    async def drain(self, below: int) -> None:
        await self.is_read.wait()
        self.size = 0

    async def close(self, within: float) -> None:
        self.is_read.set()

    @property
    def messages(self) -> list[Any]:
        return [msgspec.json.decode(part) for part in self.parts]

    @property
    def answered(self) -> list[int]:
        return [message["id"] for message in self.messages]

    @property
    def ids_and_methods(self) -> list[Any]:
        """What came, in order: the ids of answers, and the methods of notifications."""
        return [message.get("id", message.get("method")) for message in self.messages]


class Size(Arguments):
    size: int


class Gate:
    """Holds every call of a tool until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.bridge: Bridge[None] = Bridge("gate", "1", lifespan=self.lifespan, changing={"resources"})
        self.bridge.resource("gate://it", name="it")(self.read)
        self.bridge.tool("Wait.", name="wait")(self.wait)
        self.bridge.tool("Answer at once.", name="at_once")(self.at_once)
        self.bridge.tool("Answer later.", name="later")(self.later)
        self.bridge.tool("Change.", name="change")(self.change)
        self.bridge.tool("Change and wait.", name="change_later")(self.change_later)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        yield None
        self.bridge.changed.resources()  # a far side that is let go of changes what there is to read

    def read(self, ctx: Context[None]) -> str:
        return "it"

    def change(self, args: NoArguments, ctx: Context[None]) -> str:
        self.bridge.changed.resources()
        return "changed"

    async def change_later(self, args: NoArguments, ctx: Context[None]) -> str:
        await self.opened.wait()
        self.bridge.changed.resources()
        await ctx.log("info", "changed")
        return "changed"

    async def wait(self, args: NoArguments, ctx: Context[None]) -> str:
        await self.opened.wait()
        return "done"

    def at_once(self, args: Size, ctx: Context[None]) -> str:
        return "x" * args.size

    async def later(self, args: Size, ctx: Context[None]) -> str:
        await self.opened.wait()
        return "x" * args.size


@asynccontextmanager
async def serving(gate: Gate, **limits: Any) -> AsyncIterator[tuple[Source, Reader]]:
    dispatcher = Dispatcher(gate.bridge, limits=Limits(**limits))
    source, reader = Source(), Reader()
    server = StdioServer(dispatcher, Connection(dispatcher.limits), source, lambda _on_break: reader)
    task = asyncio.ensure_future(server.serve())
    await until(lambda: hasattr(source, "feed"))
    source.feed(line("initialize", {"protocolVersion": "2025-11-25"}, 0))
    await until(lambda: dispatcher.lifespans[gate.bridge].ready)
    try:
        yield source, reader
    finally:
        gate.opened.set()
        reader.is_read.set()
        source.feed(b"")
        await task


def line(method: str, params: Any, number: int) -> bytes:
    return msgspec.json.encode(request(method, params, number)) + b"\n"


def tool(name: str, number: int, **arguments: Any) -> bytes:
    return line("tools/call", call(name, arguments), number)


async def test_reading_stops_while_too_many_requests_wait_and_goes_on_when_they_are_answered() -> None:
    gate = Gate()
    async with serving(gate, requests_in_flight=2) as (source, reader):
        for number in range(1, 4):
            source.feed(tool("wait", number))
        assert not is_paused(source)  # two are in flight and one waits

        source.feed(tool("wait", 4))
        assert is_paused(source)

        gate.opened.set()
        await until(lambda: source.is_reading)
        await until(lambda: sorted(reader.answered) == [0, 1, 2, 3, 4])


async def test_reading_stops_while_answers_are_not_read_and_goes_on_when_they_are() -> None:
    async with serving(Gate(), output_bytes=1000) as (source, reader):
        source.feed(tool("at_once", 1, size=2000))
        assert is_paused(source)

        reader.is_read.set()
        await until(lambda: source.is_reading)


async def test_an_answer_that_comes_by_itself_stops_reading_too() -> None:
    gate = Gate()
    async with serving(gate, output_bytes=1000) as (source, reader):
        source.feed(tool("later", 1, size=2000))
        assert not is_paused(source)

        gate.opened.set()
        await until(lambda: 1 in reader.answered)
        assert is_paused(source)

        reader.is_read.set()
        await until(lambda: source.is_reading)


async def test_requests_that_came_while_answers_are_not_read_wait_for_the_reader() -> None:
    async with serving(Gate(), output_bytes=1000) as (source, reader):
        source.feed(tool("at_once", 1, size=2000) + tool("at_once", 2, size=1))
        assert reader.answered == [0, 1]

        reader.is_read.set()
        await until(lambda: reader.answered == [0, 1, 2])


async def test_reading_goes_on_when_the_last_waiting_answers_are_read_at_once() -> None:
    async with serving(Gate(), output_bytes=1000) as (source, reader):
        source.feed(b"".join(tool("at_once", n, size=size) for n, size in ((1, 2000), (2, 600), (3, 600))))
        assert is_paused(source)

        # Together the last two exceed the limit, and the flush after them finds a reader that takes both.
        reader.is_read.set()
        await until(lambda: reader.answered == [0, 1, 2, 3])
        await until(lambda: source.is_reading)


CHANGED = "notifications/resources/list_changed"
LISTEN = {"notifications": {"resourcesListChanged": True}}


@pytest.mark.parametrize("tool_name", ["change", "change_later"])
async def test_a_change_is_told_before_the_answer_of_the_call_that_made_it(tool_name: str) -> None:
    gate = Gate()
    gate.opened.set()
    async with serving(gate) as (source, reader):
        source.feed(tool(tool_name, 1))
        await until(lambda: 1 in reader.ids_and_methods)

        assert [what for what in reader.ids_and_methods if what in {1, CHANGED}] == [CHANGED, 1]


async def test_a_listen_stream_hears_of_a_change_before_the_answer_too() -> None:
    async with serving(Gate()) as (source, reader):
        source.feed(msgspec.json.encode(stateless("subscriptions/listen", LISTEN, 1)) + b"\n")
        await until(lambda: "notifications/subscriptions/acknowledged" in reader.ids_and_methods)
        source.feed(msgspec.json.encode(stateless("tools/call", call("change"), 2)) + b"\n")
        await until(lambda: 2 in reader.ids_and_methods)

        heard = reader.messages[-3:]
        assert sorted(message.get("method", "") for message in heard[:2]) == [CHANGED, CHANGED]
        assert heard[-1]["id"] == 2


async def test_after_the_end_of_input_nothing_but_answers_is_written() -> None:
    gate = Gate()
    async with serving(gate) as (source, reader):
        source.feed(tool("at_once", 1, size=1))  # with which the lifespan begins
        source.feed(tool("change_later", 2))
        await until(lambda: 1 in reader.ids_and_methods)
        source.feed(b"")
        gate.opened.set()

    assert reader.ids_and_methods == [0, 1, 2]


async def test_requests_that_wait_at_the_end_of_input_are_all_answered_and_then_it_ends() -> None:
    gate = Gate()
    async with serving(gate, output_bytes=50, shutdown_seconds=10_000.0) as (source, reader):
        source.feed(b"".join(line("tools/call", call("at_once", {"size": 100}), n) for n in range(1, 40)))
        assert reader.answered == [0]  # nobody reads, so they wait
    assert reader.answered == list(range(40))


pieces = st.lists(st.text("ab \r\n", max_size=20).map(str.encode), max_size=10)


@given(pieces=pieces, limit=st.integers(1, 12))
def test_the_lines_do_not_depend_on_how_the_bytes_are_cut(pieces: list[bytes], limit: int) -> None:
    lines = Lines(limit)
    found = [line for piece in pieces for line in lines.feed(piece)] + lines.end()
    expected: list[bytes | None] = []
    for line in b"".join(pieces).split(b"\n"):
        if len(line) > limit:
            expected.append(None)
        elif line.strip():
            expected.append(line)
    assert [None if isinstance(line, TooLong) else line for line in found] == expected


def test_an_end_is_told_once() -> None:
    lines = Lines(100)
    assert lines.feed(b"half") == []
    assert lines.end() == [b"half"]
    assert lines.end() == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell what was read")
@pytest.mark.parametrize("kind", ["socket", "pipe"])
async def test_an_answer_never_comes_in_one_read_with_progress_of_its_call(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The TypeScript SDK drops such progress; see `_wait_until_read`."""
    monkeypatch.setattr(stdio_server, "UNREAD_SECONDS", PATIENCE)
    bridge: Bridge[None] = Bridge("counting", "1")

    @bridge.tool("Count.")
    async def count(ctx: Context[None]) -> str:
        for number in range(3):
            await ctx.progress(number)
        return "done"

    reading, writing = (end.detach() for end in socket.socketpair()) if kind == "socket" else os.pipe()
    dispatcher = Dispatcher(bridge)
    source = Source()
    server = StdioServer(
        dispatcher, Connection(dispatcher.limits), source, lambda on_break: open_output(writing, on_break)
    )
    serving = asyncio.ensure_future(server.serve())
    await until(lambda: hasattr(source, "feed"))
    source.feed(line("initialize", {"protocolVersion": "2025-11-25"}, 0))
    os.read(reading, 65536)
    reads: list[bytes] = []
    for number in range(1, 4):
        asked = {**call("count", {}), "_meta": {"progressToken": number}}
        source.feed(line("tools/call", asked, number))
        await until(lambda: count_unread(writing))
        reads.append(await asyncio.to_thread(os.read, reading, 65536))
        while b'"result"' not in reads[-1]:
            reads.append(await asyncio.to_thread(os.read, reading, 65536))
    source.feed(b"")
    await serving
    for end in (reading, writing):
        os.close(end)

    assert sum(read.count(b"notifications/progress") for read in reads) == 9
    assert not [read for read in reads if b'"result"' in read and b"notifications/progress" in read]
