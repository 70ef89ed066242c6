"""TCP peers that a test writes itself: a server around a function, a certificate, a reset."""

import asyncio
import socket
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.certificates import certificate
from tests.support.waiting import PATIENCE

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(
    serve: Serve, tls: ssl.SSLContext | None = None, unix_socket: Path | None = None
) -> AsyncIterator[int]:
    """Serve connections with a function on a port, or a Unix socket, and end all of them in the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            tasks.discard(task)

    if unix_socket is None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    else:
        server = await asyncio.start_unix_server(handle, str(unix_socket))
    try:
        yield 0 if unix_socket else server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)


def certified(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Give TLS for a server called localhost, with a certificate of its own, and where that is."""
    chain, key = certificate(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain, key)
    return context, chain


def close_with_reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once, so that the other side sees it broken."""
    reset_when_closed(writer.get_extra_info("socket"))
    writer.transport.abort()


def reset_when_closed(connection: socket.socket) -> None:
    """Let a connection end with a reset, whenever it is closed."""
    at_once = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # linger for no time
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)


def is_listening(port: int) -> bool:
    """Tell whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
