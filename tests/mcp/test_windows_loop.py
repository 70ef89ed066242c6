"""Windows loop: what clients do while they are accepted neither stops a server nor leaves a socket open.

Of the loops of other systems the first holds as well.
"""

import asyncio
import socket
import sys
from typing import Any

import pytest

from bridgehead.mcp.process import new_loop
from tests.support.tcp import reset_when_closed
from tests.support.waiting import PATIENCE, until

TURNS = 8
"""More than an accepted connection takes to be handed over."""


class Greeter(asyncio.Protocol):
    """Says hello and closes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


def connect_and_reset(address: Any) -> None:
    """Be gone before the loop, which does not turn meanwhile, can accept."""
    with socket.create_connection(address) as client:
        reset_when_closed(client)


async def hear_greeting(address: Any) -> bytes:
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(*address)
        heard = await reader.read()
        writer.close()
        await writer.wait_closed()
    return heard


def test_clients_that_are_gone_before_they_are_accepted_leave_the_server_listening() -> None:
    complaints: list[dict[str, Any]] = []

    async def greet_after_resets() -> bytes:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        server = await loop.create_server(Greeter, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        for _ in range(TURNS):
            connect_and_reset(address)
        heard = await hear_greeting(address)
        for _ in range(TURNS):
            connect_and_reset(address)
            await asyncio.sleep(0)
        heard += await hear_greeting(address)
        server.close()
        await server.wait_closed()
        return heard

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(greet_after_resets()) == b"hellohello"
    assert complaints == []


@pytest.mark.skipif(
    sys.platform != "win32", reason="asyncio's other loops lose such a client (see Server.stop_accepting)."
)
async def test_a_server_that_is_closed_while_a_client_comes_leaves_no_socket_open() -> None:
    # A socket that is left open is a ResourceWarning, which fails a test. In each round the client is one
    # turn of the loop further when the server is closed.
    loop = asyncio.get_running_loop()
    for turns in range(TURNS):
        server = await loop.create_server(Greeter, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            server.close()
            await server.wait_closed()
            client.settimeout(0)
            await until(lambda: is_over(client))


def is_over(client: socket.socket) -> bool:
    """Tell whether the far side has closed or reset a connection; what it said before is read."""
    try:
        return client.recv(100) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
