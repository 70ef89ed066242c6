"""Streams: the GET stream of a session, and the resuming of a stream that was cut or let go of."""

import asyncio

import pytest

from bridgehead.mcp import Limits
from tests.support.http_client import Response
from tests.support.http_server import Server, serving
from tests.support.messages import call, request, stateless, text
from tests.support.waiting import PATIENCE


async def progress_of(server: Server, response: Response) -> int:
    """Read the next message, which must be progress."""
    message = await response.message()
    server.checker.check(message)
    found: int = message["params"]["progress"]
    return found


async def subscribe(server: Server, session: dict[str, str | bytes | None], uri: str) -> None:
    answer = await server.json(await server.post(request("resources/subscribe", {"uri": uri}), session))
    assert answer["result"] == {}


async def test_the_get_stream_tells_of_changes(server: Server) -> None:
    session = await server.session()
    await subscribe(server, session, "memo://today")
    stream = await server.listen(session)
    server.bridge.changed.tools()
    assert (await stream.message())["method"] == "notifications/tools/list_changed"
    server.bridge.changed.resource("memo://other")
    server.bridge.changed.resource("memo://today")
    message = await stream.message()
    server.checker.check(message)
    assert message == {
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": {"uri": "memo://today"},
    }


async def test_changes_while_nobody_listens_are_told_to_the_next_listener(server: Server) -> None:
    session = await server.session()
    server.bridge.changed.tools()
    stream = await server.listen(session)
    assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def test_a_second_listener_takes_over_and_hears_everything_from_then_on() -> None:
    async with serving(Limits(keep_alive_seconds=0.1)) as server:
        session = await server.session()
        first = await server.listen(session)
        server.bridge.changed.tools()
        assert (await first.message())["method"] == "notifications/tools/list_changed"
        second = await server.listen(session)
        assert await first.messages() == []
        for change, method in (
            (server.bridge.changed.prompts, "prompts"),
            (server.bridge.changed.tools, "tools"),
            (server.bridge.changed.resources, "resources"),
        ):
            change()
            assert (await second.message())["method"] == f"notifications/{method}/list_changed"


async def test_a_listener_that_comes_back_hears_what_it_missed_and_nothing_twice(server: Server) -> None:
    session = await server.session()
    first = await server.listen(session)
    for change in (server.bridge.changed.tools, server.bridge.changed.prompts):
        change()
        await first.message()
    last = first.last_id
    server.bridge.changed.resources()
    await first.message()
    await first.hang_up()
    second = await server.listen(session, last)
    assert (await second.message())["method"] == "notifications/resources/list_changed"
    server.bridge.changed.tools()
    assert (await second.message())["method"] == "notifications/tools/list_changed"


async def test_a_silent_get_stream_is_kept_alive_with_comments() -> None:
    async with serving(Limits(keep_alive_seconds=0.05)) as server:
        stream = await server.listen(await server.session())
        events = [await stream.event() for _ in range(3)]
        assert all(event is not None and event.is_comment for event in events)


@pytest.mark.parametrize(
    "last",
    [
        b"general",
        b"general/",
        b"general/x",
        b"9/1",
        b"",
        b"/1",
        b"general/\xb2",
        b"general/" + b"9" * 5000,
        b"general/-1",
        b"general/1",
    ],
)
async def test_an_event_that_is_not_known_is_a_bad_request(server: Server, last: bytes) -> None:
    session = await server.session()
    assert "is unknown" in await server.refused(await server.listen(session, last), 400)


async def test_a_call_goes_on_when_its_connection_is_cut_and_its_client_comes_back(server: Server) -> None:
    session = await server.session()
    asked = request("tools/call", call("steps", {"n": 5}, progress=1), 1)
    response = await server.post(asked, session)
    assert [await progress_of(server, response)] == [1]
    server.work.go.release()
    assert [await progress_of(server, response)] == [2]
    await response.hang_up()
    for _ in range(2):
        server.work.go.release()
    resumed = await server.listen(session, response.last_id)
    assert [await progress_of(server, resumed) for _ in range(2)] == [3, 4]
    for _ in range(2):
        server.work.go.release()
    assert [await progress_of(server, resumed)] == [5]
    message = await resumed.message()
    server.checker.check(message)
    assert text(message) == "counted to 5"
    assert await resumed.event() is None


async def test_a_call_that_ended_while_its_client_was_away_is_answered_when_it_comes_back(
    server: Server,
) -> None:
    session = await server.session()
    response = await server.post(request("tools/call", call("steps", {"n": 1}, progress=1), 1), session)
    await progress_of(server, response)
    await response.hang_up()
    server.work.go.release()
    await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
    for _ in range(2):  # as often as it asks
        resumed = await server.listen(session, response.last_id)
        (message,) = await resumed.messages()
        assert text(message) == "counted to 1"


async def test_a_client_may_come_back_before_its_old_connection_has_ended(server: Server) -> None:
    session = await server.session()
    response = await server.post(request("tools/call", call("steps", {"n": 2}, progress=1), 1), session)
    await progress_of(server, response)
    resumed = await server.listen(session, response.last_id)
    server.work.go.release()
    assert await progress_of(server, resumed) == 2
    server.work.go.release()
    assert text(await resumed.message()) == "counted to 2"
    assert await resumed.event() is None
    assert await response.messages() == []


async def test_a_tool_can_let_go_of_its_stream_and_the_client_comes_back_for_the_rest(server: Server) -> None:
    session = await server.session()
    response = await server.post(request("tools/call", call("detach", progress=1), 1), session)
    (priming,) = await response.events()
    assert priming.message is None
    assert priming.fields["retry"] == "1000"
    server.work.go.release()
    resumed = await server.listen(session, priming.id)
    assert await progress_of(server, resumed) == 1
    server.work.go.release()
    assert text(await resumed.message()) == "came back"
    assert await resumed.event() is None


async def test_letting_go_of_a_stream_does_nothing_where_it_cannot_be_resumed(server: Server) -> None:
    response_task = asyncio.create_task(
        server.stateless(stateless("tools/call", call("detach", progress=1), 1))
    )
    for _ in range(2):
        server.work.go.release()
    response = await response_task
    assert [message.get("method") for message in await response.messages()] == [
        "notifications/progress",
        None,
    ]


async def test_the_work_of_a_client_that_does_not_come_back_is_stopped() -> None:
    async with serving(Limits(resume_seconds=0.1)) as server:
        session = await server.session()
        response = await server.post(request("tools/call", call("wait", progress=1), 1), session)
        await progress_of(server, response)
        await response.hang_up()
        await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
        assert server.work.cancelled == 1
        assert (await server.json(await server.post(request("ping"), session)))["result"] == {}


async def test_the_work_of_a_client_that_is_back_goes_on_past_the_limit() -> None:
    async with serving(Limits(resume_seconds=2.0, keep_alive_seconds=0.5)) as server:
        session = await server.session()
        response = await server.post(request("tools/call", call("steps", {"n": 1}, progress=1), 1), session)
        await progress_of(server, response)
        await response.hang_up()
        resumed = await server.listen(session, response.last_id)
        for _ in range(6):
            event = await resumed.event()
            assert event is not None
            assert event.is_comment
        server.work.go.release()
        assert text(await resumed.message()) == "counted to 1"


async def test_a_call_that_has_said_nothing_is_stopped_when_its_client_hangs_up(server: Server) -> None:
    session = await server.session()
    body = request("tools/call", call("wait"), 1)
    asking = asyncio.create_task(server.post(body, session))
    await server.work.began.acquire()
    await server.http.close()
    await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
    assert server.work.cancelled == 1
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_stream_keeps_a_bounded_number_of_events() -> None:
    async with serving(Limits(resume_events=3)) as server:
        session = await server.session()
        response = await server.post(request("tools/call", call("count", {"n": 10}, progress=1), 1), session)
        first = await response.event()
        assert first is not None
        await response.messages()
        resumed = await server.listen(session, first.id)
        messages = await resumed.messages()
        assert [m["params"]["progress"] for m in messages[:-1]] == [9, 10]
        assert text(messages[-1]) == "counted to 10"


async def test_a_stream_keeps_a_bounded_number_of_bytes_but_always_the_newest_event() -> None:
    async with serving(Limits(resume_bytes=10)) as server:
        session = await server.session()
        response = await server.post(request("tools/call", call("count", {"n": 3}, progress=1), 1), session)
        first = await response.event()
        assert first is not None
        await response.messages()
        (message,) = await (await server.listen(session, first.id)).messages()
        assert text(message) == "counted to 3"


async def test_streams_that_ended_long_ago_make_room(server: Server) -> None:
    session = await server.session()
    ids = []
    for number in range(40):
        asked = request("tools/call", call("count", {"n": 1}, progress=1), number)
        response = await server.post(asked, session)
        await response.messages()
        ids.append(response.last_id)
    assert "has expired" in await server.refused(await server.listen(session, ids[0]), 400)
    assert await (await server.listen(session, ids[-1])).messages() == []
