"""Answers: how the answer to a POST travels, as JSON or as events, in both eras."""

import asyncio

import pytest

from bridgehead.mcp import Limits
from tests.support.http_client import Headers
from tests.support.http_server import Server, serving
from tests.support.messages import META, call, cancelled, notification, request, stateless, text

EVENTS_FIRST: Headers = {"Accept": "text/event-stream, application/json"}


async def test_a_plain_answer_is_json(server: Server) -> None:
    session = await server.session()
    response = await server.post(request("tools/call", call("echo", {"text": "ahoy"})), session)
    assert text(await server.json(response)) == "ahoy"
    response = await server.stateless(stateless("tools/call", call("echo", {"text": "ahoy"})))
    assert text(await server.json(response)) == "ahoy"


async def test_progress_makes_a_stream_that_ends_with_the_answer(server: Server) -> None:
    session = await server.session()
    response = await server.post(request("tools/call", call("count", {"n": 3}, progress="p"), 1), session)
    assert response.status == 200
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"
    events = await response.events()
    assert events[0].message is None
    assert events[0].fields["retry"] == "1000"
    assert len({event.id for event in events}) == 5
    messages = [event.message for event in events[1:]]
    for message in messages:
        server.checker.check(message)
    assert [message["params"]["progress"] for message in messages[:-1]] == [1, 2, 3]
    assert text(messages[-1]) == "counted to 3"


async def test_an_older_client_gets_no_priming_event(server: Server) -> None:
    session = await server.session("2025-06-18")
    response = await server.post(request("tools/call", call("count", {"n": 1}, progress=1), 1), session)
    events = await response.events()
    assert [event.message is None for event in events] == [False, False]


async def test_a_stateless_stream_has_no_event_ids_because_it_cannot_be_resumed(server: Server) -> None:
    response = await server.stateless(stateless("tools/call", call("count", {"n": 2}, progress=1), 1))
    events = await response.events()
    assert [event.id for event in events] == [None] * 3
    for event in events:
        server.checker.check(event.message)
    assert text(events[-1].message) == "counted to 2"


@pytest.mark.parametrize("tool", ["echo", "sync_echo"])
async def test_a_client_that_names_events_first_gets_a_stream(server: Server, tool: str) -> None:
    session = await server.session()
    asked = request("tools/call", call(tool, {"text": "a"}), 1)
    (message,) = await (await server.post(asked, {**session, **EVENTS_FIRST})).messages()
    assert text(message) == "a"
    response = await server.stateless(stateless("tools/call", call(tool, {"text": "a"}), 2), EVENTS_FIRST)
    (message,) = await response.messages()
    server.checker.check(message)
    assert text(message) == "a"


async def test_a_refusal_is_json_even_for_a_client_that_names_events_first(server: Server) -> None:
    response = await server.stateless(stateless("no/such/method"), EVENTS_FIRST)
    assert (await server.json(response, 404))["error"]["code"] == -32601


async def test_notifications_and_responses_are_accepted_without_a_body(server: Server) -> None:
    session = await server.session()
    for message in (
        notification("notifications/initialized"),
        notification("notifications/unheard_of", {"a": 1}),
        {"jsonrpc": "2.0", "id": "nobody asked", "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}},
    ):
        response = await server.post(message, session)
        assert (response.status, await response.body()) == (202, b"")
    response = await server.post(notification("x"), {"MCP-Protocol-Version": "2026-07-28"})
    assert (response.status, await response.body()) == (202, b"")


async def test_a_response_has_no_place_in_the_stateless_era(server: Server) -> None:
    response = await server.post(
        {"jsonrpc": "2.0", "id": 1, "result": {}}, {"MCP-Protocol-Version": "2026-07-28"}
    )
    assert "response" in await server.refused(response, 400)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"not JSON", -32700),
        (b"\xff", -32700),
        (b"[" * 40_000, -32700),
        (b"7", -32600),
        (b"{}", -32600),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', -32600),
    ],
)
async def test_a_malformed_body_is_a_bad_request(server: Server, body: bytes, code: int) -> None:
    answer = await server.json(await server.post(body), 400)
    assert answer["error"]["code"] == code
    assert answer["id"] is None


async def test_a_batch_is_answered_as_one_in_the_revision_that_has_batches(server: Server) -> None:
    session = await server.session("2025-03-26")
    batch = [request("tools/call", call("echo", {"text": str(n)}), n) for n in range(3)]
    answers = await server.json(await server.post([*batch, notification("x")], session))
    assert [text(answer) for answer in answers] == ["0", "1", "2"]
    response = await server.post([notification("x")], session)
    assert (response.status, await response.body()) == (202, b"")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_a_batch_is_refused_in_every_other_revision(server: Server, version: str) -> None:
    session = await server.session(version)
    assert "2025-03-26" in await server.refused(await server.post([request("ping")], session), 400)


async def test_a_batch_over_the_limit_of_its_session_is_told_to_come_again() -> None:
    async with serving(Limits(requests_in_flight=2)) as server:
        session = await server.session("2025-03-26")
        waiting = await server.post(
            [request("tools/call", call("wait", progress=n), n) for n in range(2)], session
        )
        await waiting.message()
        refused = await server.post([request("ping")], session)
        assert (await server.json(refused, 503))["error"]["code"] == -32000


async def test_a_batch_without_a_session_is_refused(server: Server) -> None:
    assert "batch" in (await server.refused(await server.post([request("ping")]), 400)).lower()


async def test_a_batch_whose_calls_are_all_cancelled_is_accepted_without_an_answer(server: Server) -> None:
    session = await server.session("2025-03-26")
    asking = asyncio.create_task(server.post([request("tools/call", call("wait"), 1)], session))
    await server.work.began.acquire()
    await (await server.post(cancelled(1), session)).body()
    response = await asking
    assert (response.status, await response.body()) == (202, b"")


async def test_a_question_travels_on_the_stream_of_its_call(server: Server) -> None:
    session = await server.session(capabilities={"elicitation": {}})
    response = await server.post(request("tools/call", call("ask"), 1), session)
    question = await response.message()
    server.checker.check(question)
    assert question["method"] == "elicitation/create"
    answer = {"action": "accept", "content": {"name": "Ada"}}
    reply = await server.post({"jsonrpc": "2.0", "id": question["id"], "result": answer}, session)
    assert reply.status == 202
    assert text(await response.message()) == "Hello, Ada!"
    assert await response.event() is None


async def test_a_stateless_question_is_a_result_that_the_client_comes_back_with(server: Server) -> None:
    asked = stateless("tools/call", call("ask"), capabilities={"elicitation": {}})
    answer = await server.json(await server.stateless(asked))
    assert answer["result"]["resultType"] == "input_required"
    asked["params"] |= {
        "requestState": answer["result"]["requestState"],
        "inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}},
    }
    assert text(await server.json(await server.stateless(asked))) == "Hello, Ada!"


async def test_a_cancelled_call_ends_without_an_answer(server: Server) -> None:
    session = await server.session()
    response = await server.post(request("tools/call", call("wait", progress=1), 1), session)
    assert (await response.message())["method"] == "notifications/progress"
    await (await server.post(cancelled(1), session)).body()
    assert await response.messages() == []
    assert server.work.cancelled == 1


async def test_a_silent_stream_is_kept_alive_with_comments() -> None:
    async with serving(Limits(keep_alive_seconds=0.05)) as server:
        session = await server.session()
        asked = request("tools/call", call("steps", {"n": 1}, progress=1), 1)
        response = await server.post(asked, session)
        comments = 0
        while comments < 3:
            event = await response.event()
            assert event is not None
            comments += event.is_comment
        server.work.go.release()
        assert text(await response.message()) == "counted to 1"


async def test_the_server_names_itself_in_a_stateless_answer(server: Server) -> None:
    answer = await server.json(await server.stateless(stateless("server/discover")))
    assert answer["result"]["_meta"][META + "serverInfo"]["name"] == "busy"
