"""Replicas on one port look like one server, whichever of them a connection reaches."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.host.conftest import Dial
from tests.host.replicas.test_replica import sharing
from tests.host.test_command import called, post
from tests.support.host_command import PATIENCE, Command, add_token, serving
from tests.support.host_server import bearer
from tests.support.http_client import Headers
from tests.support.http_server import JSON_POST
from tests.support.messages import HANDSHAKE, call, encode, initialize, notification, request, text
from tests.support.redis_server import RedisServer

COUNT = 3


@contextmanager
def herd(folder: Path, redis: RedisServer, **settings: str) -> Iterator[list[Command]]:
    """Run replicas on one port, with one state directory."""
    shared = {**sharing(redis), "BRIDGEHEAD_BRIDGES": "alpha,beta", "BRIDGEHEAD_REUSE_PORT": "1", **settings}
    with ExitStack() as stack:
        hosts = [stack.enter_context(serving(folder, settings=shared))]
        port = ("--port", str(hosts[0].port))
        hosts += [stack.enter_context(serving(folder, *port, settings=shared)) for _ in range(COUNT - 1)]
        yield hosts


async def test_a_session_is_the_same_on_every_connection(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    token = bearer(add_token(tmp_path, "alice"))
    with herd(tmp_path, redis_server, BRIDGEHEAD_AUTH="on") as (host, *_):
        http = dial(host.port)
        for _ in range(4):
            hello = await post(http, initialize(), token)
            assert (await hello.json())["result"]["protocolVersion"] == HANDSHAKE
            session: Headers = {
                **token,
                "Mcp-Session-Id": hello.headers["mcp-session-id"],
                "MCP-Protocol-Version": HANDSHAKE,
            }
            await post(http, notification("notifications/initialized"), session)
            for _ in range(6):  # each on a connection of its own, and so to any of the replicas
                answer = await post(http, request("tools/call", call("alpha_later", {"text": "hi"})), session)
                assert text(await answer.json()) == "hi"
            without = {**session, "Authorization": None}
            assert (await post(http, request("tools/list"), without)).status == 401
            assert (await http.request("DELETE", "/mcp", session)).status == 204
            assert (await post(http, request("tools/list"), session)).status == 404


async def test_a_stream_of_a_session_is_passed_on_as_it_comes(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with herd(tmp_path, redis_server, BRIDGEHEAD_DRAIN_SECONDS="1") as (
        host,
        *_,
    ):  # a call is still waiting at its end
        http = dial(host.port)
        hello = await post(http, initialize())
        session: Headers = {
            "Mcp-Session-Id": hello.headers["mcp-session-id"],
            "MCP-Protocol-Version": HANDSHAKE,
        }
        await post(http, request("resources/subscribe", {"uri": "alpha://note"}), session)
        accept: Headers = {"Accept": "text/event-stream"}
        streams = [await http.request("GET", headers={**session, **accept}) for _ in range(5)]
        writing = request("tools/call", call("alpha_write", {"text": "x"}))
        assert text(await (await post(http, writing, session)).json()) == "wrote x"

        assert (await streams[-1].message())["params"] == {"uri": "alpha://note"}
        waiting = await post(http, request("tools/call", call("alpha_wait", progress="p")), session)
        assert (await waiting.message())["method"] == "notifications/progress"
        await waiting.hang_up()


async def test_clients_of_the_first_revision_reach_their_stream(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with herd(tmp_path, redis_server) as (host, *_):
        http = dial(host.port)
        stream = await http.request("GET", "/sse", {"Accept": "text/event-stream"})
        first = await stream.event()
        assert first is not None
        for number in range(5):
            ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
            posted = await post(http, ping, path=first.fields["data"])
            assert posted.status == 202
            assert (await stream.message())["id"] == number


async def test_a_body_that_comes_slowly_is_passed_on_too(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    token = bearer(add_token(tmp_path, "alice"))
    settings = {
        "BRIDGEHEAD_AUTH": "on",
        "BRIDGEHEAD_BODY_LIMIT": "300kb",
        "bridgehead.host.factory:BODY_SECONDS": "0.5",
    }
    with herd(tmp_path, redis_server, **settings) as (host, *_):
        http = dial(host.port)
        hello = await post(http, initialize(), token)
        session: Headers = {
            "Mcp-Session-Id": hello.headers["mcp-session-id"],
            "MCP-Protocol-Version": HANDSHAKE,
        }
        message = encode(request("tools/call", call("alpha_echo", {"text": "x" * 100_000})))
        statuses = []
        for _ in range(6):  # each on a connection of its own, and so to any of the replicas
            for shown, sent, length in (
                (token, message, len(message)),
                ({}, message, len(message)),
                (token, message[:-1], len(message)),
                (token, message * 4, len(message) * 4),
            ):
                headers = {**JSON_POST, **session, **shown, "Content-Length": str(length)}
                response, writer = await http.begin(http.head("POST", "/mcp", headers) + sent[:50_000])
                writer.write(sent[50_000:])
                await response.begin()
                statuses.append(response.status)

    assert statuses == [200, 401, 408, 413] * 6


async def test_when_a_replica_dies_its_sessions_begin_again_and_the_others_serve_on(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with herd(tmp_path, redis_server) as (first, *_):
        http = dial(first.port)
        sessions = [(await post(http, initialize())).headers["mcp-session-id"] for _ in range(12)]
        first.process.kill()
        first.process.wait(PATIENCE)

        own: list[Headers] = [
            {"Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE} for session in sessions
        ]
        statuses = [(await post(http, request("tools/list"), session)).status for session in own]
        gone = sessions[statuses.index(404)].partition("~")[0]

        owners = [session.partition("~")[0] for session in sessions]
        assert {owner == gone for owner, status in zip(owners, statuses, strict=True) if status == 404} == {
            True
        }
        assert {owner == gone for owner, status in zip(owners, statuses, strict=True) if status == 200} <= {
            False
        }
        assert text(await called(http, "alpha_echo")) == "hi"


async def test_a_new_replica_takes_over_the_port_from_an_old_one(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    with herd(tmp_path, redis_server) as (old, new, _):
        assert await asyncio.to_thread(old.end) == 0
        assert (await dial(new.port).request("GET", "/readyz")).status == 200


async def test_an_id_of_no_session_is_answered_as_such(
    tmp_path: Path, dial: Dial, redis_server: RedisServer
) -> None:
    unknown = ["9~x", "x~y", "~", "00000~x", "1~", "0~unknown", "no mark at all"]
    with herd(tmp_path, redis_server) as (host, *_):
        http = dial(host.port)
        headers: list[Headers] = [
            {"Mcp-Session-Id": id_, "MCP-Protocol-Version": HANDSHAKE} for id_ in unknown
        ]
        statuses = [(await post(http, request("tools/list"), one)).status for one in headers]

    assert dict(zip(unknown, statuses, strict=True)) == dict.fromkeys(unknown, 404)


async def test_no_signal_ends_it_midway(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, "--bridges", "alpha") as host:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            host.process.send_signal(number)
        assert text(await called(dial(host.port), "alpha_echo")) == "hi"
        host.process.send_signal(signal.SIGQUIT)
        assert await asyncio.to_thread(host.process.wait, PATIENCE) == 0

    assert sum(line["event"] == "ended" for line in host.lines) == 1
