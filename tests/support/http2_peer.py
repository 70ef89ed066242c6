"""An HTTP/2 server that a test writes itself, with TLS on a real socket, on the server's side of h2.

Each request is served by a function of the test, as a task of its own; what the client does to it is noted.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

ServeStream = Callable[["PeerStream"], Awaitable[None]]


class PeerStream:
    """One request, and the way to answer it."""

    def __init__(self, connection: "PeerConnection", number: int, headers: dict[str, str]) -> None:
        self.connection = connection
        self.id = number
        self.headers = headers
        self.body = b""
        self.is_whole = asyncio.Event()
        """Set when all of the request has come."""
        self.reset: int | None = None
        """The code with which the client ended it."""
        self.reset_at: float | None = None
        self.sent = 0
        """Bytes of the body that the client has allowed to be sent."""
        self.task: asyncio.Task[None] | None = None

    def head(self, status: int = 200, **headers: str) -> None:
        """Send the head of the answer."""
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.connection.h2.send_headers(self.id, [(":status", str(status)), *named])
        self.connection.flush()

    async def send(self, data: bytes) -> None:
        """Send a piece of the body, as the client has room for it."""
        h2 = self.connection.h2
        while data:
            room = min(h2.local_flow_control_window(self.id), h2.max_outbound_frame_size, len(data))
            if room <= 0:
                await self.connection.change()
                continue
            h2.send_data(self.id, data[:room])
            self.sent += room
            data = data[room:]
            self.connection.flush()
            await self.connection.writer.drain()

    def end(self) -> None:
        """End the answer."""
        self.connection.h2.end_stream(self.id)
        self.connection.flush()

    async def answer(self, body: bytes, status: int = 200) -> None:
        """Answer as a whole."""
        self.head(status)
        await self.send(body)
        self.end()

    def refuse(self, code: int = ErrorCodes.REFUSED_STREAM) -> None:
        """End it with a code."""
        self.connection.h2.reset_stream(self.id, code)
        self.connection.flush()


class PeerConnection:
    """One connection of a client."""

    def __init__(self, peer: "Http2Peer", writer: asyncio.StreamWriter) -> None:
        self.peer = peer
        self.writer = writer
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.streams: dict[int, PeerStream] = {}
        self.most_at_once = 0
        self.is_deaf = False
        """Set by a test: what comes is not looked at any more."""
        self.is_over = False
        self._changed = asyncio.Event()

    def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())

    def say_goodbye(self, last: int, code: int = 0) -> None:
        """Send a GOAWAY frame and go on, which h2 does not do by itself."""
        frame = GoAwayFrame(0)
        frame.last_stream_id, frame.error_code = last, code
        self.flush()
        self.writer.write(frame.serialize())

    async def change(self) -> None:
        """Wait until something came."""
        self._changed.clear()
        await self._changed.wait()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        self.h2.initiate_connection()
        if self.peer.most_streams is not None:
            self.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: self.peer.most_streams})
        self.flush()
        try:
            while data := await reader.read(65536):
                if self.is_deaf:
                    continue
                for event in self.h2.receive_data(data):
                    self._take(event)
                self.flush()
                self._changed.set()
        except (ConnectionError, ProtocolError):
            pass
        finally:
            self.is_over = True
            for stream in self.streams.values():
                if stream.task is not None:
                    stream.task.cancel()

    def _take(self, event: Any) -> None:
        if isinstance(event, events.RequestReceived):
            headers = {str(name): str(value) for name, value in event.headers}  # decoded, as it was asked for
            stream = PeerStream(self, event.stream_id, headers)
            self.streams[stream.id] = stream
            self.peer.streams.append(stream)
            stream.task = asyncio.create_task(self._serve_stream(stream))
            self.most_at_once = max(self.most_at_once, self.h2.open_inbound_streams)
        elif isinstance(event, events.DataReceived):
            self.streams[event.stream_id].body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, events.StreamEnded):
            self.streams[event.stream_id].is_whole.set()
        elif isinstance(event, events.StreamReset):
            stream = self.streams[event.stream_id]
            stream.reset, stream.reset_at = event.error_code, asyncio.get_running_loop().time()
            if stream.task is not None:
                stream.task.cancel()
            self.peer.noticed.set()

    async def _serve_stream(self, stream: PeerStream) -> None:
        await stream.is_whole.wait()
        with suppress(ConnectionError, ProtocolError):
            await self.peer.serve_stream(stream)


class Http2Peer:
    """A server, and everything that came to it."""

    def __init__(self, serve_stream: ServeStream, most_streams: int | None) -> None:
        self.serve_stream = serve_stream
        self.most_streams = most_streams
        self.connections: list[PeerConnection] = []
        self.streams: list[PeerStream] = []
        self.noticed = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/v1"

    async def until_reset(self, stream: PeerStream, within: float) -> None:
        """Wait until the client has ended a stream."""
        async with asyncio.timeout(within):
            while stream.reset is None:
                self.noticed.clear()
                await self.noticed.wait()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = PeerConnection(self, writer)
        self.connections.append(connection)
        try:
            await connection.serve(reader)
        finally:
            writer.transport.abort()


@asynccontextmanager
async def http2_peer(
    serve_stream: ServeStream, tls: ssl.SSLContext, *, most_streams: int | None = None
) -> AsyncIterator[Http2Peer]:
    """Run a server meanwhile."""
    peer = Http2Peer(serve_stream, most_streams)
    tls.set_alpn_protocols(["h2"])
    server = await asyncio.start_server(peer.handle, "127.0.0.1", 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        for connection in peer.connections:
            connection.writer.transport.abort()
        for stream in peer.streams:
            if stream.task is not None:
                stream.task.cancel()
                await asyncio.wait([stream.task], timeout=5)
