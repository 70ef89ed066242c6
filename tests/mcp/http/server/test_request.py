"""Request: how a body is taken and an answer given, whole or as a stream, as fast as the client reads."""

import asyncio
import socket

import pytest

from tests.mcp.http.server.writing import wire, wired_call
from tests.support.http_client import Response
from tests.support.http_server import Server, mirrored
from tests.support.messages import call, encode, initialize, request, stateless, text
from tests.support.waiting import PATIENCE


async def test_the_head_of_a_stream_comes_at_once(server: Server) -> None:
    session = await server.session()
    async with asyncio.timeout(PATIENCE):
        stream = await server.listen(session)
    assert stream.headers["content-type"] == "text/event-stream"


async def test_a_large_body_and_a_large_answer_pass(server: Server) -> None:
    data = wired_call(server, "echo", 1, {"text": "y" * 5_000_000})
    response, _ = await server.http.begin(data)
    await response.begin()
    assert len(text(await server.json(response))) == 5_000_000


@pytest.mark.parametrize("expecting", ["100-continue", "100-Continue"])
async def test_a_client_may_ask_to_send_its_body(server: Server, expecting: str) -> None:
    body = encode(initialize())
    data = wire(server, body, {"Expect": expecting})
    response, writer = await server.http.begin(data[: -len(body)])
    async with asyncio.timeout(PATIENCE):
        assert await response._reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"  # noqa: SLF001
    writer.write(body)
    await response.begin()
    server.checker.asked(initialize())
    assert "result" in await server.json(response)


async def test_an_old_client_gets_an_answer_that_ends_with_the_connection(server: Server) -> None:
    data = wired_call(server, "echo", 1, {"text": "old"}).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    response, _ = await server.http.begin(data)
    await response.begin()
    assert response.headers["connection"] == "close"
    assert text(await server.json(response)) == "old"
    assert await response.closed_by_server()


async def test_an_old_client_gets_a_stream_that_ends_with_the_connection(server: Server) -> None:
    message = stateless("tools/call", call("count", {"n": 2}, progress=1), 1)
    data = wire(server, encode(message), mirrored(message)).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    response, _ = await server.http.begin(data)
    await response.begin()
    assert "transfer-encoding" not in response.headers
    body = await response._reader.read()  # noqa: SLF001  (there is no other end than the connection's)
    assert body.count(b"data: {") == 3


async def test_a_client_may_ask_for_the_connection_to_be_closed(server: Server) -> None:
    body = encode(initialize())
    response, _ = await server.http.begin(wire(server, body, {"Connection": "close"}))
    await response.begin()
    assert await response.body()
    assert await response.closed_by_server()


async def test_an_answer_to_head_has_no_body(server: Server) -> None:
    response, _ = await server.http.begin(server.http.head("HEAD", "/mcp", {}))
    await response.begin()
    assert response.status == 405
    assert int(response.headers["content-length"]) > 0  # that of the body which GET would have
    ping = wired_call(server, "echo", 1, {"text": "next"})
    response._writer.write(ping)  # noqa: SLF001
    again = Response(response._reader, response._writer)  # noqa: SLF001
    await again.begin()
    assert text(await server.json(again)) == "next"


async def test_a_slow_reader_makes_the_server_wait_and_then_gets_everything(server: Server) -> None:
    session = await server.session()
    asked = request("tools/call", call("count", {"n": 50_000}, progress=1), 1)
    response = await server.post(asked, session)
    messages = await response.messages()
    assert [message["params"]["progress"] for message in messages[:-1]] == list(range(1, 50_001))


async def test_a_client_that_does_not_read_is_not_read_from_and_then_gets_everything(server: Server) -> None:
    count = 8_000
    data = b"".join(wired_call(server, "echo", number, {"text": "e" * 5_000}) for number in range(count))
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.setblocking(False)  # noqa: FBT003 - its name says what it sets
        loop = asyncio.get_running_loop()
        sending = loop.create_task(loop.sock_sendall(client, data))
        assert await server.is_alive()
        await asyncio.wait([sending], timeout=1)
        assert not sending.done()
        answers, rest = 0, b""
        async with asyncio.timeout(PATIENCE):
            while answers < count or b"e" * 5_000 not in rest:
                *whole, rest = (rest + await loop.sock_recv(client, 1024 * 1024)).split(b"HTTP/1.1 200 OK")
                answers += len(whole)
            await sending
