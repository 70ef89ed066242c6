"""The lifespan: what a bridge holds open starts when it is first needed, and ends with the server."""

import asyncio
import gc
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments, ResourceItem, ToolError
from bridgehead.mcp.lifespan import Lifespan
from tests.support.checked import PATIENCE, connect


class Pool:
    """Something that is held open; tells what happened to it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.problem: BaseException | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        self.events.append("opening")
        await self.may_open.wait()
        if self.problem is not None:
            raise self.problem
        self.events.append("open")
        try:
            yield "the pool"
        finally:
            self.events.append("closed")


class Word(Arguments):
    word: str = ""


def make(pool: Pool) -> Bridge[str]:
    bridge: Bridge[str] = Bridge("pool", "1", lifespan=pool.opened)

    @bridge.tool("Use the pool.")
    def use(args: NoArguments, ctx: Context[str]) -> str:
        return ctx.state

    @bridge.tool("Use the pool later.")
    async def use_later(args: NoArguments, ctx: Context[str]) -> str:
        return ctx.state

    @bridge.resource("pool://it", name="it")
    def resource(ctx: Context[str]) -> str:
        return ctx.state

    @bridge.prompt("Use the pool.")
    def prompt(args: Word, ctx: Context[str]) -> str:
        return ctx.state

    @bridge.complete_prompt("prompt", "word")
    def complete(value: str, given: dict[str, str], ctx: Context[str]) -> list[str]:
        return [ctx.state]

    @bridge.resource_list
    def listed(ctx: Context[str]) -> list[ResourceItem]:
        assert ctx.state == "the pool"
        return []

    return bridge


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "use"}),
        ("tools/call", {"name": "use_later"}),
        ("resources/read", {"uri": "pool://it"}),
        ("resources/list", {}),
        ("prompts/get", {"name": "prompt"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "prompt"}, "argument": {"name": "word", "value": ""}},
        ),
    ],
)
async def test_a_lifespan_starts_with_the_first_request_that_needs_it_and_ends_once(
    method: str, params: dict[str, object]
) -> None:
    pool = Pool()
    async with connect(make(pool)) as client:
        for early in ("tools/list", "ping", "prompts/list"):
            await client.request(early)
        assert pool.events == []
        first, second = await client.request(method, params), await client.request(method, params)
        assert first == second
        assert "the pool" in str(first) or method == "resources/list"
        assert pool.events == ["opening", "open"]

    assert pool.events == ["opening", "open", "closed"]


async def test_calls_wait_for_one_and_the_same_start() -> None:
    pool = Pool()
    pool.may_open.clear()
    async with connect(make(pool)) as client:
        tasks = [client.start("tools/call", {"name": name})[1] for name in ("use", "use_later", "use")]
        await client.request("ping")
        assert [task.done() for task in tasks] == [False, False, False]
        pool.may_open.set()
        answers = await asyncio.gather(*tasks)

    assert [answer["result"]["content"][0]["text"] for answer in answers] == ["the pool"] * 3
    assert pool.events == ["opening", "open", "closed"]


async def test_a_call_that_is_cancelled_while_the_lifespan_starts_leaves_it_to_the_others() -> None:
    pool = Pool()
    pool.may_open.clear()
    async with connect(make(pool)) as client:
        request_id, first = client.start("tools/call", {"name": "use"})
        _, second = client.start("tools/call", {"name": "use"})
        await client.request("ping")
        await client.notify("notifications/cancelled", {"requestId": request_id})
        assert await first is None
        pool.may_open.set()

        assert (await second)["result"]["content"][0]["text"] == "the pool"


async def test_a_lifespan_that_fails_for_a_known_reason_tells_it_in_every_answer() -> None:
    pool = Pool()
    pool.problem = ToolError("The far side does not answer. Start the game first.")
    async with connect(make(pool)) as client:
        for tool in ("use", "use_later"):
            result = await client.call(tool)
            assert (result["isError"], result["content"][0]["text"]) == (True, str(pool.problem))


async def test_a_lifespan_that_fails_by_a_bug_does_not_leak_it(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool()
    pool.problem = ValueError("swordfish")
    async with connect(make(pool)) as client:
        failed = await client.call("use")

    assert failed["isError"]
    assert "swordfish" not in str(client.sent)
    assert "swordfish" in caplog.text


async def test_a_lifespan_that_failed_is_reported_alike_however_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = Pool()
    pool.problem = ValueError("a bug")
    async with connect(make(pool)) as client:
        for _ in range(20):
            assert (await client.call("use"))["isError"]

    lengths = [len(traceback.extract_tb(r.exc_info[2])) for r in caplog.records if r.exc_info is not None]
    assert len(lengths) == 20
    assert len(set(lengths)) == 1


async def test_a_lifespan_that_leaves_does_not_take_the_server_with_it() -> None:
    pool = Pool()
    pool.problem = SystemExit(3)
    async with connect(make(pool)) as client:
        assert (await client.call("use"))["isError"]
        assert (await client.request("tools/list"))["tools"]


async def test_calls_are_told_of_a_lifespan_that_failed_in_the_middle(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = asyncio.Event()

    @asynccontextmanager
    async def watched() -> AsyncIterator[str]:
        async def watch() -> None:
            await broken.wait()
            raise ToolError("The far side is gone.")

        async with asyncio.TaskGroup() as group:
            group.create_task(watch())
            yield "the far side"

    bridge: Bridge[str] = Bridge("watched", "1", lifespan=watched)

    @bridge.tool("Use it.")
    def use(args: NoArguments, ctx: Context[str]) -> str:
        return ctx.state

    async with connect(bridge) as client:
        assert await client.text("use") == "the far side"
        broken.set()
        async with asyncio.timeout(PATIENCE):
            while client.dispatcher.lifespans[bridge].ready:
                await asyncio.sleep(0)

        assert (await client.call("use"))["isError"]
    assert "did not end well" in caplog.text


async def test_a_lifespan_that_was_never_needed_is_never_entered() -> None:
    pool = Pool()
    async with connect(make(pool)) as client:
        await client.request("tools/list")

    assert pool.events == []


async def test_a_lifespan_that_does_not_want_to_end_is_cancelled_after_its_time() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def endless() -> AsyncIterator[None]:
        try:
            yield None
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    lifespan = Lifespan(endless)
    await lifespan.wait_until_entered()
    assert lifespan.ready
    await lifespan.stop(0.01)

    assert events == ["cancelled"]


async def test_a_lifespan_that_fails_at_its_end_is_reported_and_keeps_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @asynccontextmanager
    async def fragile() -> AsyncIterator[None]:
        yield None
        raise ValueError("could not be closed")

    lifespan = Lifespan(fragile)
    await lifespan.wait_until_entered()
    await lifespan.stop(5.0)
    del lifespan
    gc.collect()

    assert "could not be closed" in caplog.text


async def test_stopping_while_it_starts_releases_those_who_wait() -> None:
    begun = asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        begun.set()
        await asyncio.get_running_loop().create_future()
        yield None

    lifespan = Lifespan(slow)
    waiting = asyncio.ensure_future(lifespan.wait_until_entered())
    await begun.wait()
    await lifespan.stop(0.01)
    done, _ = await asyncio.wait({waiting}, timeout=PATIENCE)

    assert done, "whoever waited for the lifespan waits for ever"
    assert waiting.cancelled() or waiting.exception() is not None


async def test_a_bridge_without_a_lifespan_is_ready_at_once() -> None:
    lifespan = Lifespan(None)
    lifespan.start()
    await lifespan.wait_until_entered()
    await lifespan.stop(1.0)

    assert lifespan.ready
    assert lifespan.value is None
