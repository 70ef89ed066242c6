"""Legacy: the HTTP+SSE transport, as a client of 2024-11-05 uses it."""

import asyncio

import pytest

from bridgehead.mcp import Limits
from tests.mcp.http.test_sessions import by_header
from tests.support.http_client import Headers, Response
from tests.support.http_server import Server, serving
from tests.support.messages import Json, call, cancelled, initialize, notification, request, text
from tests.support.waiting import PATIENCE

OLD = "2024-11-05"


class LegacyClient:
    """One open stream and the place to post to."""

    def __init__(self, server: Server, stream: Response, path: str) -> None:
        self.server = server
        self.stream = stream
        self.path = path

    async def post(self, message: Json | bytes, status: int = 202) -> None:
        response = await self.server.post(message, path=self.path)
        body = await response.body()
        assert response.status == status, body

    async def receive(self) -> Json:
        message: Json = await self.stream.message()
        self.server.checker.check(message)
        return message

    async def ask(self, message: Json) -> Json:
        await self.post(message)
        return await self.receive()


async def opened(server: Server, headers: Headers | None = None) -> LegacyClient:
    """Open the stream and read where to post to."""
    stream = await server.http.request("GET", "/sse", {"Accept": "text/event-stream", **(headers or {})})
    assert stream.status == 200
    event = await stream.event()
    assert event is not None
    assert event.fields["event"] == "endpoint"
    assert event.fields["data"].startswith("/messages?session_id=")
    return LegacyClient(server, stream, event.fields["data"])


async def connected(server: Server) -> LegacyClient:
    client = await opened(server)
    hello = await client.ask(initialize(OLD))
    assert hello["result"]["protocolVersion"] == OLD
    await client.post(notification("notifications/initialized"))
    return client


async def test_everything_is_answered_on_the_stream(server: Server) -> None:
    client = await connected(server)
    for tool in ("echo", "sync_echo"):
        assert text(await client.ask(request("tools/call", call(tool, {"text": "a"})))) == "a"
    await client.post(b"not JSON")
    answer = await client.receive()
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    await client.post(request("tools/call", call("count", {"n": 2}, progress=1), 1))
    said = [await client.receive() for _ in range(3)]
    assert [message.get("method") for message in said] == ["notifications/progress"] * 2 + [None]


async def test_a_client_hears_of_changes(server: Server) -> None:
    client = await connected(server)
    server.bridge.changed.tools()
    assert (await client.receive())["method"] == "notifications/tools/list_changed"
    server.bridge.changed.prompts()
    assert (await client.receive())["method"] == "notifications/prompts/list_changed"


async def test_a_change_is_told_before_the_answer_of_the_call_that_made_it(server: Server) -> None:
    client = await connected(server)
    for what in ("tools", "prompts", "resources"):
        await client.post(request("tools/call", call("change", {"what": what}), what))
        assert (await client.receive())["method"] == f"notifications/{what}/list_changed"
        assert (await client.receive())["id"] == what


async def test_a_slow_client_does_not_find_the_answer_in_one_piece_with_the_progress(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TypeScript SDK 1.x loses progress that it reads together with the answer."""
    monkeypatch.setattr("bridgehead.mcp.http.legacy_sse._NOTIFICATION_GAP_SECONDS", 1.0)
    client = await connected(server)
    await client.post(request("tools/call", call("count", {"n": 1}, progress=1), 1))
    for _ in range(100):
        await asyncio.sleep(0)
    piece = await client.stream.piece()

    assert b"notifications/progress" in piece
    assert b"counted to 1" not in piece
    assert b"counted to 1" in await client.stream.piece()


async def test_a_cancelled_call_is_not_answered(server: Server) -> None:
    client = await connected(server)
    await client.post(request("tools/call", call("wait"), 1))
    await server.work.began.acquire()
    await client.post(cancelled(1))
    await server.work.idle.wait()
    assert (await client.ask(request("ping", None, 2)))["id"] == 2


async def test_a_client_that_hangs_up_cancels_everything(server: Server) -> None:
    client = await connected(server)
    for number in range(3):
        await client.post(request("tools/call", call("wait"), number))
        await server.work.began.acquire()
    await client.stream.hang_up()
    await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
    assert server.work.cancelled == 3
    await client.post(request("ping"), 404)


async def test_letting_go_of_the_stream_does_nothing(server: Server) -> None:
    client = await connected(server)
    await client.post(request("tools/call", call("detach"), 1))
    for _ in range(2):
        server.work.go.release()
    assert text(await client.receive()) == "came back"


async def test_an_unknown_session_is_not_found(server: Server) -> None:
    for path in ("/messages", "/messages?session_id=x", "/messages?session_id="):
        assert "stream" in await server.refused(await server.post(request("ping"), path=path), 404)


async def test_the_stream_of_another_principal_does_not_exist() -> None:
    async with serving(settings={"wrap": by_header}) as server:
        client = await opened(server, {"X-Caller": "ada"})
        await client.post(request("ping"), 404)
        response = await server.post(initialize(OLD), {"X-Caller": "ada"}, path=client.path)
        assert response.status == 202


async def test_a_silent_stream_is_kept_alive_with_comments() -> None:
    async with serving(Limits(keep_alive_seconds=0.05)) as server:
        client = await opened(server)
        for _ in range(3):
            event = await client.stream.event()
            assert event is not None
            assert event.is_comment
        assert (await client.ask(initialize(OLD)))["id"] == "hello"


async def test_streams_have_a_limit() -> None:
    async with serving(Limits(sessions=1)) as server:
        client = await opened(server)
        refused = await server.http.request("GET", "/sse")
        assert refused.headers["retry-after"] == "30"
        await server.refused(refused, 503)
        await client.stream.hang_up()
        async with asyncio.timeout(PATIENCE):
            while (await server.http.request("GET", "/sse")).status != 200:
                await asyncio.sleep(0.01)


async def test_requests_over_the_limit_are_told_to_come_again_and_a_cancellation_gets_through() -> None:
    async with serving(Limits(requests_in_flight=1)) as server:
        client = await connected(server)
        await client.post(request("tools/call", call("wait"), 1))
        await client.post(request("ping"), 503)
        await client.post(cancelled(1))
        await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
        assert (await client.ask(request("ping", None, 3)))["id"] == 3


async def test_an_answer_to_a_question_gets_through_at_the_limit() -> None:
    async with serving(Limits(requests_in_flight=2)) as server:
        client = await opened(server)
        await client.ask(initialize("2025-06-18", {"elicitation": {}}))
        await client.post(request("tools/call", call("ask"), 1))
        question = await client.receive()
        await client.post(request("tools/call", call("wait"), 2))
        answer = {"action": "accept", "content": {"name": "Ada"}}
        await client.post({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert text(await client.receive()) == "Hello, Ada!"


async def test_the_end_of_the_server_answers_what_runs_and_ends_the_stream(server: Server) -> None:
    idle = await connected(server)
    client = await connected(server)
    await client.post(request("tools/call", call("steps", {"n": 1}), 1))
    await server.work.began.acquire()
    server.app.end_streams()
    assert await idle.stream.messages() == []
    server.work.go.release()
    (answer,) = await client.stream.messages()
    assert text(answer) == "counted to 1"


async def test_a_body_over_the_limit_is_refused() -> None:
    async with serving(Limits(message_bytes=300)) as server:
        client = await connected(server)
        await client.post(b" " * 301, 413)
        assert (await client.ask(request("ping", None, 3)))["id"] == 3


async def test_a_slow_reader_gets_everything(server: Server) -> None:
    client = await connected(server)
    for number in range(200):
        await client.post(request("tools/call", call("big", {"size": 20_000}), number))
    answers = {(await client.receive())["id"] for _ in range(200)}
    assert answers == set(range(200))


async def open_unread(server: Server) -> tuple[asyncio.StreamWriter, str]:
    """Open a stream that is read no further than its path for messages."""
    # A small limit: beyond it asyncio stops reading from the socket too.
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
    writer.write(server.http.head("GET", "/sse", {}))
    path = (await reader.readuntil(b"\n\n")).decode().rpartition("data: ")[2].strip()
    await server.post(initialize(OLD), path=path)
    return writer, path


async def test_a_client_that_does_not_read_is_told_to_come_again() -> None:
    async with serving(Limits(requests_in_flight=8)) as server:
        writer, path = await open_unread(server)
        big = request("tools/call", call("sync_big", {"size": 1_000_000}))
        statuses = [(await server.post(big, path=path)).status for _ in range(200)]
        writer.close()
    assert set(statuses) == {202, 503}
    assert statuses[-1] == 503


async def test_answers_that_nobody_reads_are_charged_to_their_caller_until_it_hangs_up() -> None:
    async with serving(Limits(bytes_per_caller=20_000_000)) as server:
        writer, path = await open_unread(server)
        big = request("tools/call", call("sync_big", {"size": 1_000_000}))
        async with asyncio.timeout(PATIENCE):
            while (refused := await server.post(big, path=path)).status == 202:
                pass
            assert refused.status == 429
            assert b"Read your answers" in await refused.body()
            assert server.app.accounts.bytes.total > 15_000_000

            writer.close()
            while server.app.accounts.bytes.total:
                await asyncio.sleep(0.001)
    assert server.app.accounts.bytes.by_caller == {}


async def test_a_caller_over_its_thread_time_is_told_to_come_again() -> None:
    async with serving(Limits(thread_seconds_per_caller=1.0)) as server:
        client = await connected(server)
        for caller in ("127.0.0.1", "another"):
            server.app.accounts.work.add(caller, 2.0)

        await client.post(request("tools/call", call("echo", {"text": "x"})), 429)
        await client.post(request("ping"))
