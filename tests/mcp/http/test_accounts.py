"""Accounts: what a caller holds is bounded, given back, and dropped or refused where memory is short."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridgehead.mcp import Arguments, Bridge, Context, Limits, ProtocolError, ToolError
from bridgehead.mcp.changes import SUBSCRIPTION_BYTES
from bridgehead.mcp.errors import INVALID_PARAMS
from bridgehead.mcp.features.tools import TASKS_EXTENSION, TaskSupport
from bridgehead.mcp.http import application
from bridgehead.mcp.http.accounts import OTHERS, Accounts, WorkTime
from bridgehead.mcp.http.events import EventStream
from bridgehead.mcp.http.rejection import Rejection
from bridgehead.mcp.shape import VALUE_BYTES
from bridgehead.mcp.tasks.run import TaskRun
from tests.support.busy_bridge import Work
from tests.support.clock import Clock
from tests.support.http_client import Headers, Response
from tests.support.http_server import JSON_POST, Server, own_server, serving
from tests.support.messages import Json, call, encode, request, stateless, text
from tests.support.waiting import PATIENCE

EVENTS_FIRST: Headers = {"Accept": "text/event-stream, application/json"}
LARGE = "x" * 100_000


def held(server: Server) -> int:
    return server.app.accounts.bytes.total


async def until_held(server: Server, size: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while held(server) != size:
            await asyncio.sleep(0.005)


# --- events kept for resuming -------------------------------------------------------------------------------


async def call_as_events(server: Server, session: Headers, number: int) -> str | None:
    """Call as an event stream, read all of it, and return the id of its last event."""
    asked = request("tools/call", call("echo", {"text": LARGE}), number)
    events = await (await server.post(asked, {**session, **EVENTS_FIRST})).events()
    assert text(events[-1].message) == LARGE
    return events[-1].id


async def test_events_kept_for_resuming_are_bounded_over_all_sessions_of_a_caller() -> None:
    async with serving(Limits(bytes_per_caller=1_000_000)) as server:
        for _ in range(3):
            session = await server.session()
            for number in range(1, 11):
                await call_as_events(server, session, number)
                assert held(server) <= 1_000_000
        assert held(server) > 500_000  # the newest are kept


async def test_the_oldest_events_go_first_and_are_no_longer_known() -> None:
    async with serving(Limits(bytes_per_caller=250_000)) as server:
        session = await server.session()
        ids = [await call_as_events(server, session, number) for number in range(1, 5)]
        assert all(ids)

        gone, kept = (str(identifier).rsplit("/", 1)[0] + "/0" for identifier in (ids[0], ids[-1]))
        assert await (await server.listen(session, gone)).messages() == []
        (message,) = await (await server.listen(session, kept)).messages()
        assert text(message) == LARGE


async def test_ending_a_session_gives_back_what_was_kept_for_it() -> None:
    async with serving() as server:
        sessions = [await server.session() for _ in range(2)]
        for session in sessions:
            await call_as_events(server, session, 1)
        both = held(server)
        await (await server.http.request("DELETE", headers=sessions[0])).body()
        assert held(server) == both // 2
        await (await server.http.request("DELETE", headers=sessions[1])).body()
        assert held(server) == 0


async def test_events_of_an_ended_stream_are_forgotten_after_their_time() -> None:
    async with serving(Limits(resume_seconds=0.01)) as server:
        await call_as_events(server, await server.session(), 1)
        await until_held(server, 0)


async def test_a_session_that_ended_leaves_nothing_to_the_garbage_collector() -> None:
    async with serving() as server:
        await call_as_events(server, await server.session(), 1)  # what is made once is made now
        gc.collect()
        gc.disable()
        try:
            session = await server.session()
            await call_as_events(server, session, 1)
            await (await server.http.request("DELETE", headers=session)).body()
            alive = [thing for thing in gc.get_objects() if isinstance(thing, EventStream)]
            assert [stream.name for stream in alive if stream.has_ended and not stream.events_after(0)] == []
        finally:
            gc.enable()


class Text(Arguments):
    text: str


async def fail_at_once(args: Text, ctx: Context[None]) -> str:
    raise ToolError("No.")


async def fail_later(args: Text, ctx: Context[None]) -> str:
    await ctx.detach()
    raise ToolError("No.") from ValueError(args)


async def refuse_later(args: Text, ctx: Context[None]) -> str:
    await asyncio.sleep(0)
    raise ProtocolError(INVALID_PARAMS, "No.")


def refuse(args: Text, ctx: Context[None]) -> str:
    raise ProtocolError(INVALID_PARAMS, "No.")


async def succeed(args: Text, ctx: Context[None]) -> str:
    return "Yes."


@pytest.mark.parametrize("room", [10_000, 100], ids=["with room for a task", "without"])
@pytest.mark.parametrize(
    ("handler", "task", "grace"),
    [
        (refuse, None, 0),
        (refuse_later, None, 0),
        (succeed, "optional", 9),
        (fail_at_once, "optional", 9),
        (fail_later, "optional", 9),
        (fail_later, "required", 9),
        (fail_later, "optional", 0),
        (fail_later, "required", 0),
    ],
)
async def test_no_call_leaves_its_arguments_to_the_garbage_collector(
    handler: Callable[[Text, Context[None]], Any], task: TaskSupport | None, grace: float, room: int
) -> None:
    bridge: Bridge[None] = Bridge("calls", "1")
    bridge.tool("Try.", name="try", task=task, task_grace_seconds=grace)(handler)
    app = application(bridge, limits=Limits(bytes_per_caller=room))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with own_server(app, listener):
            server = Server(app, Work(), listener.getsockname()[1])
            gc.collect()
            gc.disable()
            try:
                await (await ask(server, "tools/call", call("try", {"text": "x" * 1000}))).body()
                async with asyncio.timeout(PATIENCE):
                    while any(isinstance(one, Text | TaskRun) for one in gc.get_objects()):
                        await asyncio.sleep(0.01)
            finally:
                gc.enable()
            await server.http.close()


# --- bodies ------------------------------------------------------------------------------------------------


async def begin_body(server: Server, size: int) -> asyncio.StreamWriter:
    """Send a body without its last byte."""
    body = encode(request("tools/call", call("echo", {"text": "x" * size})))
    headers: Headers = {**JSON_POST, "Content-Length": str(len(body))}
    _, writer = await server.http.begin(server.http.head("POST", "/mcp", headers))
    writer.write(body[:-1])
    return writer


async def test_bodies_that_never_end_are_bounded_over_all_requests_of_a_caller() -> None:
    async with serving(Limits(bytes_per_caller=3_000_000)) as server:
        session = await server.session()
        writers = [await begin_body(server, 1_000_000) for _ in range(10)]
        async with asyncio.timeout(PATIENCE):
            while len(server.app.accounts.requests.by_caller) and server.app.accounts.requests.total > 2:
                await asyncio.sleep(0.005)
        assert 1_000_000 < held(server) <= 3_000_000

        small = await server.post(request("ping"), session)
        assert (await server.json(small))["result"] == {}
        for writer in writers:
            writer.close()
        await until_held(server, 0)


async def test_a_caller_over_its_share_is_told_what_to_do() -> None:
    async with serving(Limits(bytes_per_caller=1_000_000)) as server:
        writer = await begin_body(server, 900_000)
        async with asyncio.timeout(PATIENCE):
            while held(server) < 900_000:
                await asyncio.sleep(0.005)
        large = request("tools/call", call("echo", {"text": "x" * 500_000}))
        response = await server.post(large, await server.session())

        assert response.headers["retry-after"] == "5"
        said = await server.refused(response, 429)
        assert "1000000 are the limit" in said
        assert "try again" in said
        writer.close()
        await until_held(server, 0)


async def test_a_batch_reserves_what_it_may_answer() -> None:
    async with serving(Limits(bytes_per_caller=1_000_000, batch_bytes=600_000)) as server:
        session = await server.session("2025-03-26")
        first = asyncio.ensure_future(server.post([request("tools/call", call("wait"), 1)], session))
        await until_held(server, 600_000)
        assert "bytes" in await server.refused(await server.post([request("ping", {}, 2)], session), 429)
        await (await server.http.request("DELETE", headers=session)).body()
        await (await first).body()
        await until_held(server, 0)


async def test_a_body_is_charged_for_what_it_builds_while_its_call_is_under_way() -> None:
    async with serving() as server:
        waiting = call("wait") | {"other": [{}] * 1000}
        body = encode(asked := request("tools/call", waiting))
        session = await server.session()
        answer = asyncio.ensure_future(server.post(asked, session))
        # The lists and objects of the message, and the commas between them: values as they are counted.
        values = sum(map(body.decode().count, "[{,"))
        await until_held(server, len(body) + values * VALUE_BYTES)
        await (await server.http.request("DELETE", headers=session)).body()
        await (await answer).body()
        await until_held(server, 0)


async def test_a_body_that_would_pass_the_memory_limit_is_refused_before_it_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(Limits(memory_bytes=1_000_000)) as server:
        monkeypatch.setattr(server.app.accounts, "_read_memory", lambda: 800_000)
        session = await server.session()
        fits = request("tools/call", call("echo", {"text": "x"}) | {"other": [{}] * 200})
        too_much = request("tools/call", call("echo", {"text": "x"}) | {"other": [{}] * 1000})

        await server.json(await server.post(fits, session))
        assert "no memory left" in await server.refused(await server.post(too_much, session), 503)
        await server.json(await server.post(fits, session))  # nothing was taken


# --- subscriptions ------------------------------------------------------------------------------------------


async def subscribe(server: Server, session: Headers, uri: str) -> Response:
    return await server.post(request("resources/subscribe", {"uri": uri}), session)


async def test_subscriptions_are_charged_until_they_are_ended() -> None:
    async with serving() as server:
        session = await server.session()
        for uri in ("memo://one", "memo://two", "memo://two"):
            await server.json(await subscribe(server, session, uri))
        assert held(server) == 2 * (SUBSCRIPTION_BYTES + len("memo://one"))

        for _ in range(2):  # the second ends nothing
            ended = request("resources/unsubscribe", {"uri": "memo://one"})
            await server.json(await server.post(ended, session))
        assert held(server) == SUBSCRIPTION_BYTES + len("memo://two")
        await (await server.http.request("DELETE", headers=session)).body()
        assert held(server) == 0


async def test_subscriptions_beyond_a_callers_share_are_refused_over_all_its_sessions() -> None:
    async with serving(Limits(bytes_per_caller=70_000)) as server:  # a subscription and the body of another
        sessions = [await server.session() for _ in range(2)]
        await server.json(await subscribe(server, sessions[0], "memo://" + "x" * 30_000))
        refused = await subscribe(server, sessions[1], "memo://" + "y" * 30_000)

        assert refused.headers["retry-after"] == "5"
        assert "Unsubscribe" in await server.refused(refused, 503)
        assert held(server) == SUBSCRIPTION_BYTES + len("memo://") + 30_000  # nothing for what was refused
        await (await server.http.request("DELETE", headers=sessions[0])).body()
        await server.json(await subscribe(server, sessions[1], "memo://" + "y" * 30_000))


async def test_the_subscriptions_of_a_listen_stream_are_charged_while_it_is_open() -> None:
    async with serving() as server:
        wanted = {"notifications": {"resourceSubscriptions": ["memo://one", "memo://two"]}}
        stream = await server.stateless(stateless("subscriptions/listen", wanted))
        await until_held(server, 2 * (SUBSCRIPTION_BYTES + len("memo://one")))
        await stream.hang_up()
        await until_held(server, 0)


# --- tasks --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving_tasks(limits: Limits) -> AsyncIterator[tuple[Server, asyncio.Event]]:
    """Serve a tool whose calls are tasks that wait for the event, and return half of their text."""
    bridge: Bridge[None] = Bridge("tasks", "1")
    door = asyncio.Event()

    @bridge.tool("Wait.", task="required", task_grace_seconds=0)
    async def wait(args: Text, ctx: Context[None]) -> str:
        await door.wait()
        return args.text[::2]

    app = application(bridge, limits=limits)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with own_server(app, listener):
            server = Server(app, Work(), listener.getsockname()[1])
            yield server, door
            await server.http.close()


async def ask(server: Server, method: str, params: Json) -> Response:
    """Ask as a client that can take tasks."""
    return await server.stateless(
        stateless(method, params, capabilities={"extensions": {TASKS_EXTENSION: {}}})
    )


async def make_task(server: Server, size: int) -> str:
    # Read as it is: the official types do not know tasks yet.
    answer = await (await ask(server, "tools/call", call("wait", {"text": "x" * size}))).json()
    task_id: str = answer["result"]["taskId"]
    return task_id


async def test_a_task_is_charged_with_its_arguments_then_with_its_result_until_that_expires() -> None:
    async with serving_tasks(Limits(task_seconds=3)) as (server, door):
        await make_task(server, 100_000)
        await until_held(server, len('{"text":""}') + 100_000 + VALUE_BYTES)

        door.set()
        async with asyncio.timeout(PATIENCE):
            while not 50_000 < held(server) < 60_000:
                await asyncio.sleep(0.005)
        await until_held(server, 0)  # although nobody asks for it again


async def test_a_task_beyond_its_callers_share_is_refused_and_a_cancelled_one_makes_room() -> None:
    async with serving_tasks(Limits(bytes_per_caller=250_000)) as (server, _):
        first = await make_task(server, 100_000)
        refused = await ask(server, "tools/call", call("wait", {"text": "x" * 100_000}))

        assert refused.headers["retry-after"] == "5"
        assert "Wait until some of your tasks have ended" in await server.refused(refused, 503)
        await (await ask(server, "tasks/cancel", {"taskId": first})).body()
        await until_held(server, 0)
        await make_task(server, 100_000)


def test_what_may_not_be_kept_is_not_charged_and_what_is_there_already_always_is() -> None:
    accounts = Accounts(Limits(bytes_per_caller=100))
    assert accounts.hold("ada", 60)
    assert not accounts.hold("ada", 60)
    assert accounts.bytes.by_caller == {"ada": 60}

    accounts.charge("ada", 60)  # a result
    accounts.charge("bob", 0)  # a result without content
    assert accounts.bytes.by_caller == {"ada": 120}
    accounts.release("bob", 0)
    accounts.release("ada", 120)
    assert accounts.bytes.by_caller == {}


# --- the memory of the process ------------------------------------------------------------------------------


class Holder:
    """Events of one caller."""

    def __init__(self, accounts: Accounts, caller: str, *sizes: int) -> None:
        self.streams = [EventStream(f"{caller} {size}", Limits(), accounts, caller) for size in sizes]
        for stream, size in zip(self.streams, sizes, strict=True):
            stream.append(b"x" * size)

    @property
    def kept(self) -> list[bool]:
        return [bool(stream.events_after(0)) for stream in self.streams]


async def test_at_the_limit_the_largest_holder_loses_its_oldest_events_and_nobody_else() -> None:
    used = 0
    accounts = Accounts(Limits(memory_bytes=10_000_000), lambda: used)
    large, small = Holder(accounts, "eve", 500_000, 600_000, 700_000), Holder(accounts, "ada", 300_000)
    used = 10_800_000

    assert not accounts.check_memory()
    assert (large.kept, small.kept) == ([False, False, True], [True])
    accounts.check("bob", 1000)


async def test_when_no_events_are_left_whoever_would_hold_more_is_refused_and_small_calls_go_on() -> None:
    used = 20_000_000
    accounts = Accounts(Limits(memory_bytes=10_000_000), lambda: used)
    holder = Holder(accounts, "eve", 500_000)
    accounts.charge("eve", 2_000_000)
    accounts.charge("ada", 1000)

    assert accounts.check_memory()
    assert holder.kept == [False]
    for caller, size in (("eve", 0), ("ada", 100_000), ("bob", 100_000)):
        with pytest.raises(Rejection) as refused:
            accounts.check(caller, size)
        assert refused.value.response.status == 503
        assert (b"retry-after", b"5") in refused.value.response.headers
    accounts.check("ada")
    accounts.check("bob")

    used = 5_000_000
    accounts.check("eve")
    assert not accounts.check_memory()


async def test_memory_is_looked_at_while_it_is_charged() -> None:
    accounts = Accounts(Limits(memory_bytes=10_000_000), lambda: accounts.bytes.total)
    fullness = []
    for _ in range(2):
        accounts.charge("eve", 9_000_000)
        fullness.append(accounts.is_full)
    assert fullness == [False, True]

    accounts.release("eve", 18_000_000)
    accounts.check("eve", 1)
    assert not accounts.bytes.by_caller


# --- time in threads ----------------------------------------------------------------------------------------


def test_time_in_threads_is_kept_for_a_bounded_number_of_callers() -> None:
    threads = WorkTime(30.0)
    for number in range(1500):
        threads.add(f"caller {number}", 0.5)
    threads.add("caller 0", 0.25)

    assert len(threads.by_caller) == 1001
    assert threads.by_caller["caller 0"] == 0.75
    assert threads.by_caller[OTHERS] == 250.0


def test_a_caller_that_computes_alone_is_never_refused() -> None:
    threads = WorkTime(30.0, Clock(1000.0).now)
    threads.add("eve", 100.0)
    threads.add("", 5.0)  # the process itself

    threads.check("eve")


def test_a_caller_over_its_part_of_a_minute_is_refused_while_others_need_threads_until_it_is_below() -> None:
    clock = Clock(1000.0)
    threads = WorkTime(30.0, clock.now)
    threads.add("eve", 20.0)
    clock.set(1020.0)
    threads.add("eve", 15.0)
    threads.add("ada", 0.001)

    threads.check("ada")
    with pytest.raises(Rejection) as refused:
        threads.check("eve")
    assert refused.value.response.status == 429
    assert (b"retry-after", b"40") in refused.value.response.headers
    assert "35 s of CPU time in the last minute" in refused.value.error.message
    assert threads.over == {"eve"}

    clock.set(1060.0)
    threads.check("eve")
    assert not threads.over


async def test_a_caller_over_its_thread_time_gets_429_for_calls_alone() -> None:
    async with serving(Limits(thread_seconds_per_caller=1.0)) as server:
        session = await server.session()
        threads = server.app.accounts.work
        threads.add("127.0.0.1", 2.0)
        asked = request("tools/call", call("echo", {"text": "x"}))
        await server.json(await server.post(asked, session))  # alone

        threads.add("another", 0.01)
        refused = await server.post(asked, session)
        assert 50 <= int(refused.headers["retry-after"]) <= 60
        assert "1 s are the limit" in await server.refused(refused, 429)
        await server.json(await server.post(request("ping"), session))
