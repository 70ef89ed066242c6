"""Guard: who is turned away before anything is read, and with which words."""

import asyncio

import pytest

from bridgehead.mcp import Limits
from tests.mcp.http.test_sessions import by_header
from tests.support.http_client import Headers
from tests.support.http_server import JSON_POST, Server, serving
from tests.support.messages import call, encode, initialize, request, stateless, text
from tests.support.waiting import PATIENCE, until


async def status(server: Server, headers: Headers) -> int:
    """Send an initialize with these headers, and return the status."""
    response = await server.post(initialize(), headers)
    await server.json(response, response.status)
    return response.status


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 200),
        ("LocalHost:8080", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:3000", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1:x", 421),
        ("", 421),
        (None, 421),
    ],
)
async def test_only_the_hosts_of_this_machine_are_answered_for(
    server: Server, host: str | None, expected: int
) -> None:
    assert await status(server, {"Host": host}) == expected


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, 200),
        ("http://localhost:5173", 200),
        ("http://127.0.0.1", 200),
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("", 403),
        ("localhost", 403),
    ],
)
async def test_only_pages_of_this_machine_may_call(server: Server, origin: str | None, expected: int) -> None:
    for _ in range(2):  # the second time from memory
        assert await status(server, {"Origin": origin}) == expected


async def test_hosts_and_origins_can_be_allowed_by_name() -> None:
    async with serving(
        allowed_hosts=["bridge.example", "strict.example:8443"], allowed_origins=["https://App.example/"]
    ) as server:
        assert await status(server, {"Host": "bridge.example:1"}) == 200
        assert await status(server, {"Host": "strict.example:8443"}) == 200
        assert await status(server, {"Host": "strict.example:8444"}) == 421
        assert await status(server, {"Host": "localhost"}) == 421
        host: Headers = {"Host": "bridge.example"}
        assert await status(server, {**host, "Origin": "https://app.example"}) == 200
        assert await status(server, {**host, "Origin": "https://bridge.example"}) == 200
        assert await status(server, {**host, "Origin": "http://app.example"}) == 403


async def test_a_star_allows_every_host_but_no_origin_by_itself() -> None:
    async with serving(allowed_hosts=["*"]) as server:
        assert await status(server, {"Host": "anything.example"}) == 200
        assert await status(server, {"Host": "x", "Origin": "http://anything.example"}) == 403
    async with serving(allowed_hosts=["*"], allowed_origins=["*"]) as server:
        assert await status(server, {"Host": "x", "Origin": "http://anything.example"}) == 200


async def test_the_guard_stands_before_every_path_and_method(server: Server) -> None:
    evil: Headers = {"Origin": "http://evil.example"}
    for method, path in (("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages")):
        await server.refused(await server.http.request(method, path, evil), 403)


async def test_more_different_pages_than_are_remembered_are_still_told_apart() -> None:
    async with serving(Limits(sessions_per_caller=1000)) as server:
        for number in range(300):
            assert await status(server, {"Origin": f"http://localhost:{number}"}) == 200
        assert await status(server, {"Origin": "http://localhost:299"}) == 200
        assert await status(server, {"Origin": "http://evil.example"}) == 403


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/jsonx", "application/x-www-form-urlencoded"]
)
async def test_a_body_that_is_not_declared_as_json_is_refused(server: Server, kind: str | None) -> None:
    assert await status(server, {"Content-Type": kind}) == 415


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_may_be_declared_in_other_ways(server: Server, kind: str) -> None:
    assert await status(server, {"Content-Type": kind}) == 200


@pytest.mark.parametrize(
    "accept", ["application/json", "text/event-stream", "text/html", "", "*/*;q=0", "*/*;q=x"]
)
async def test_a_client_that_cannot_read_both_kinds_of_answer_is_refused(server: Server, accept: str) -> None:
    expected = 200 if accept == "" else 406  # an empty list is as good as none
    assert await status(server, {"Accept": accept}) == expected


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/*, text/*", "Text/Event-Stream;q=0.1, application/json;q=0.5"]
)
async def test_what_is_accepted_may_be_said_in_other_ways(server: Server, accept: str | None) -> None:
    assert await status(server, {"Accept": accept}) == 200


async def test_what_is_accepted_may_be_said_in_two_headers(server: Server) -> None:
    assert await status(server, {"Accept": "application/json", "accept": "text/event-stream"}) == 200


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization"])
async def test_what_callers_are_let_in_by_may_be_given_once(server: Server, name: str) -> None:
    value = f"127.0.0.1:{server.port}"
    response = await server.post(initialize(), {name: value, name.lower(): value})
    assert (response.status, await response.body()) == (
        400,
        b"Host, Origin and Authorization may be given once",
    )


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip"])
async def test_a_packed_body_is_not_unpacked(server: Server, encoding: str) -> None:
    assert await status(server, {"Content-Encoding": encoding}) == 415
    assert await status(server, {"Content-Encoding": "Identity"}) == 200


async def test_a_listener_that_does_not_accept_events_is_refused(server: Server) -> None:
    session = await server.session()
    await server.refused(
        await server.http.request("GET", headers={**session, "Accept": "application/json"}), 406
    )


async def test_there_is_nothing_at_other_paths(server: Server) -> None:
    for path in ("/", "/mcp/", "/other", "/mc%70/x"):
        assert path.partition("%")[0] in await server.refused(await server.http.request("POST", path), 404)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/mcp", "GET, POST, DELETE"),
        ("OPTIONS", "/mcp", "GET, POST, DELETE"),
        ("POST", "/sse", "GET"),
        ("GET", "/messages", "POST"),
    ],
)
async def test_other_methods_are_told_which_ones_there_are(
    server: Server, method: str, path: str, allow: str
) -> None:
    response = await server.http.request(method, path)
    await server.refused(response, 405)
    assert response.headers["allow"] == allow


SMALL = Limits(message_bytes=1000, body_seconds=0.2)


async def test_a_body_over_the_limit_is_refused_before_it_is_sent() -> None:
    async with serving(SMALL) as server:
        head = server.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": "1001"})
        response, writer = await server.http.begin(head)
        await response.begin()
        assert "1000" in await server.refused(response, 413)
        writer.write(b" " * 1001)  # some clients send it nevertheless
        assert await server.is_alive()


async def test_a_body_over_the_limit_is_refused_while_it_comes_in_pieces() -> None:
    async with serving(SMALL) as server:
        head = server.http.head("POST", "/mcp", {**JSON_POST, "Transfer-Encoding": "chunked"})
        response, _ = await server.http.begin(head + b"2bc\r\n" + b" " * 700 + b"\r\n2bc\r\n" + b" " * 700)
        await response.begin()
        assert "1000" in await server.refused(response, 413)
        assert await server.is_alive()


async def test_a_body_in_pieces_is_put_together() -> None:
    async with serving() as server:
        head = server.http.head("POST", "/mcp", {**JSON_POST, "Transfer-Encoding": "chunked"})
        body = encode(initialize())
        response, writer = await server.http.begin(head)
        for start in range(0, len(body), 7):
            piece = body[start : start + 7]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await response.begin()
        server.checker.note_requests(initialize())
        assert "result" in await server.json(response)


@pytest.mark.parametrize("sent", [b"", b'{"jsonrpc"'])
async def test_a_body_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with serving(SMALL) as server:
        head = server.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": "500"})
        response, _ = await server.http.begin(head + sent)
        async with asyncio.timeout(PATIENCE):
            await response.begin()
        assert "0.2 s" in await server.refused(response, 408)
        assert await server.is_alive()


async def test_a_client_that_hangs_up_within_its_body_does_no_harm(server: Server) -> None:
    head = server.http.head("POST", "/mcp", {**JSON_POST, "Content-Length": "500"})
    response, _ = await server.http.begin(head + b"{")
    await response.hang_up()
    assert await server.is_alive()


async def test_too_many_requests_at_once_are_told_to_come_again() -> None:
    async with serving(Limits(http_requests_in_flight=2, resume_seconds=0.1)) as server:
        session = await server.session()
        running = [
            await server.post(
                request("tools/call", {"name": "wait", "_meta": {"progressToken": n}}, n), session
            )
            for n in range(2)
        ]
        refused = await server.post(request("ping"), session)
        assert refused.headers["retry-after"] == "1"
        assert (await server.json(refused, 503))["error"]["code"] == -32000
        for response in running:
            await response.hang_up()


async def test_too_many_requests_of_one_session_are_told_to_come_again() -> None:
    async with serving(Limits(requests_in_flight=1)) as server:
        session = await server.session()
        response = await server.post(
            request("tools/call", {"name": "wait", "_meta": {"progressToken": 1}}, 1), session
        )
        refused = await server.post(request("ping"), session)
        assert (await server.json(refused, 503))["error"]["code"] == -32000
        assert (await server.json(await server.post(request("ping"), await server.session())))["result"] == {}
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await server.post(cancelled, session)).status == 202
        await response.messages()
        assert (await server.json(await server.post(request("ping"), session)))["result"] == {}


# --- what each caller has open ------------------------------------------------------------------------------


LIMITS = Limits(sessions_per_caller=2, streams_per_caller=2, http_requests_per_caller=2)
ADA: Headers = {"X-Caller": "ada"}
EVE: Headers = {"X-Caller": "eve"}


async def test_a_caller_has_only_so_many_sessions_and_others_still_get_theirs() -> None:
    async with serving(LIMITS, settings={"wrap": by_header}) as server:
        first = await server.post(initialize(), EVE)
        session: Headers = {**EVE, "Mcp-Session-Id": first.headers["mcp-session-id"]}
        await (await server.post(initialize(), EVE)).body()
        third = await server.post(initialize(), EVE)
        assert "2 sessions" in await server.refused(third, 429)
        assert third.headers["retry-after"] == "30"
        assert (await server.post(initialize(), ADA)).status == 200

        assert (await server.http.request("DELETE", headers=session)).status == 204
        assert (await server.post(initialize(), EVE)).status == 200


async def test_callers_that_leave_their_bodies_unfinished_lock_nobody_out() -> None:
    async with serving(Limits(http_requests_in_flight=6), settings={"wrap": by_header}) as server:
        for name in ("eve", "eve", "mallory", "mallory", "trudy", "trudy"):
            head = server.http.head("POST", "/mcp", {**JSON_POST, "X-Caller": name, "Content-Length": "10"})
            await server.http.begin(head + b"{")
        await until(lambda: server.app.accounts.requests.total == 6)

        assert (await server.post(initialize(), EVE)).status == 503
        assert (await server.post(initialize(), ADA)).status == 200


async def open_stream(server: Server, kind: str, who: Headers) -> int:
    """Open a stream of a kind, and return its status."""
    if kind == "get":
        hello = await server.post(initialize(), who)
        return (await server.listen({**who, "Mcp-Session-Id": hello.headers["mcp-session-id"]})).status
    if kind == "sse":
        return (await server.http.request("GET", "/sse", who)).status
    listening = stateless("subscriptions/listen", {"notifications": {}}, 1)
    return (await server.stateless(listening, who)).status


async def test_streams_of_all_kinds_are_counted_together() -> None:
    async with serving(LIMITS, settings={"wrap": by_header}) as server:
        assert await open_stream(server, "sse", EVE) == 200
        assert await open_stream(server, "listen", EVE) == 200
        for kind in ("sse", "listen", "get"):
            assert await open_stream(server, kind, EVE) == 429
        for kind in ("listen", "get"):
            assert await open_stream(server, kind, ADA) == 200


async def test_a_caller_has_only_so_many_requests_in_flight() -> None:
    async with serving(LIMITS, settings={"wrap": by_header}) as server:
        waiting = [
            await server.stateless(stateless("tools/call", call("wait", progress=1), number), EVE)
            for number in range(2)
        ]
        for response in waiting:
            await response.message()
        echo = stateless("tools/call", call("echo", {"text": "me too"}), 9)
        assert "2 requests" in await server.refused(await server.stateless(echo, EVE), 429)
        assert text(await server.json(await server.stateless(echo, ADA))) == "me too"
        await waiting[0].hang_up()
        async with asyncio.timeout(PATIENCE):
            while (await server.stateless(echo, EVE)).status != 200:
                await asyncio.sleep(0.01)


async def test_without_a_principal_an_address_is_the_caller() -> None:
    async with serving(LIMITS) as server:
        for _ in range(2):
            assert (await server.post(initialize())).status == 200
        assert (await server.post(initialize())).status == 429
        answer = await server.stateless(stateless("tools/call", call("echo", {"text": "stateless"}), 1))
        assert text(await server.json(answer)) == "stateless"
        assert (await server.post(request("ping"))).status == 400
