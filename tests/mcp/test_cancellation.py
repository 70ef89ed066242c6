"""Cancellation: it stops the work itself, leaves nothing behind, and is not answered."""

import asyncio

import pytest

from bridgehead.mcp import Bridge, Context, NoArguments, jsonrpc
from bridgehead.mcp.revisions import REVISIONS, V2025_11_25, Revision
from tests.support.checked import STATELESS, connect
from tests.support.waiting import PATIENCE


class Workshop:
    """A bridge whose work tells when it starts and how it ends."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cleaned = asyncio.Event()
        self.ends: list[str] = []
        self.bridge: Bridge[None] = Bridge("workshop", "1")
        self._declare()

    async def _work(self) -> str:
        self.started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        finally:
            self.cleaned.set()
        return "never"

    def _declare(self) -> None:
        @self.bridge.tool("Work without end.")
        async def work(args: NoArguments, ctx: Context[None]) -> str:
            return await self._work()

        @self.bridge.tool("Work, and do not want to stop.")
        async def stubborn(args: NoArguments, ctx: Context[None]) -> str:
            try:
                return await self._work()
            except asyncio.CancelledError:
                return "finished all the same"

        @self.bridge.tool("Work, and fail when stopped.")
        async def fragile(args: NoArguments, ctx: Context[None]) -> str:
            try:
                return await self._work()
            except asyncio.CancelledError:
                raise ValueError("broken") from None

        @self.bridge.resource("w://work", name="work")
        async def resource(ctx: Context[None]) -> str:
            return await self._work()

        @self.bridge.prompt("Work without end.")
        async def prompt(args: NoArguments, ctx: Context[None]) -> str:
            return await self._work()


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "work"}),
        ("tools/call", {"name": "stubborn"}),
        ("tools/call", {"name": "fragile"}),
        ("resources/read", {"uri": "w://work"}),
        ("prompts/get", {"name": "prompt"}),
    ],
)
async def test_a_cancelled_request_stops_and_is_not_answered(
    revision: Revision, method: str, params: dict[str, str]
) -> None:
    workshop = Workshop()
    async with connect(workshop.bridge, revision=revision) as client:
        request_id, task = client.start(method, params)
        await workshop.started.wait()
        before = len(client.sent)
        await client.notify("notifications/cancelled", {"requestId": request_id, "reason": "enough"})

        assert await task is None
        assert workshop.cleaned.is_set()
        assert workshop.ends == ["cancelled"]
        assert client.connection.in_flight == {}
        assert len(client.sent) == before


@pytest.mark.parametrize("revision", [V2025_11_25, STATELESS], ids=str)
async def test_a_request_that_is_cancelled_before_it_begins_never_begins(revision: Revision) -> None:
    workshop = Workshop()
    async with connect(workshop.bridge, revision=revision) as client:
        request_id, task = client.start("tools/call", {"name": "work"})
        reply = client.dispatcher.handle_message(
            jsonrpc.decode(
                b'{"jsonrpc":"2.0","id":"early","method":"resources/read","params":{"uri":"w://work",'
                b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
                b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
            ),
            client.connection,
            client,
        )
        await client.notify("notifications/cancelled", {"requestId": "early"})

        assert asyncio.iscoroutine(reply)
        assert await reply is None
        assert "early" not in client.connection.in_flight
        await workshop.started.wait()
        await client.notify("notifications/cancelled", {"requestId": request_id})
        assert await task is None
        assert workshop.ends == ["cancelled"]


async def test_only_the_named_request_is_cancelled() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        request_id, task = client.start("tools/call", {"name": "work"})
        await workshop.started.wait()
        for other in (request_id + 1, str(request_id), "x"):
            await client.notify("notifications/cancelled", {"requestId": other})
        assert list(client.connection.in_flight) == [request_id]
        await client.notify("notifications/cancelled", {"requestId": request_id})
        await task


async def test_a_client_that_goes_stops_all_of_its_work() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        tasks = [client.start("tools/call", {"name": "work"})[1] for _ in range(3)]
        await workshop.started.wait()

    assert await asyncio.gather(*tasks) == [None, None, None]
    assert workshop.ends == ["cancelled"] * 3
    assert client.connection.in_flight == {}


async def test_a_transport_that_is_cancelled_itself_stops_the_work_and_hears_of_it() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        _, task = client.start("tools/call", {"name": "work"})
        await workshop.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert workshop.ends == ["cancelled"]
        assert client.connection.in_flight == {}


async def test_only_the_notification_for_it_cancels() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        request_id, task = client.start("tools/call", {"name": "work"})
        await workshop.started.wait()

        await client.notify("notifications/example", {"requestId": request_id})
        await asyncio.sleep(0)
        assert workshop.ends == []

        await client.notify("notifications/cancelled", {"requestId": request_id})
        await asyncio.wait({task}, timeout=PATIENCE)
        assert workshop.ends == ["cancelled"]
