"""A raw HTTP/1.1 client: sends what no good client would, reads events as they come, hangs up at will."""

import asyncio
from contextlib import suppress
from typing import Any

from tests.support import waiting
from tests.support.messages import decode

PATIENCE = waiting.PATIENCE

Headers = dict[str, str | bytes | None]
"""Header names and values; None leaves a default out."""


class Event:
    """One server-sent event, or a comment."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.fields: dict[str, str] = {}
        for line in block.decode().splitlines():
            name, _, value = line.partition(":")
            self.fields[name] = value.removeprefix(" ")

    @property
    def is_comment(self) -> bool:
        """Tell whether there is nothing in it but a comment."""
        return self.block.startswith(b":")

    @property
    def id(self) -> str | None:
        """The event's id."""
        return self.fields.get("id")

    @property
    def message(self) -> Any:
        """The JSON-RPC message in it; None where its data is empty."""
        data = self.fields.get("data", "")
        return decode(data.encode()) if data else None


class Response:
    """A response whose body may still be on its way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""
        self._ended = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.cookies: list[str] = []
        self.last_id: str | None = None

    async def begin(self) -> None:
        """Read the status and the headers."""
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        self.status = int(first.split(" ")[1])
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
            if name.lower() == "set-cookie":
                self.cookies.append(value.strip())

    async def body(self) -> bytes:
        """Read the whole body."""
        async with asyncio.timeout(PATIENCE):
            while not self._ended:
                await self._more()
        return self._buffer

    async def json(self) -> Any:
        """Read the whole body as JSON."""
        assert self.headers["content-type"] == "application/json", self.headers
        return decode(await self.body())

    async def _more(self) -> None:
        if self.headers.get("transfer-encoding") == "chunked":
            size = int((await self._reader.readuntil(b"\r\n"))[:-2], 16)
            self._buffer += (await self._reader.readexactly(size + 2))[:-2]
            self._ended = size == 0
        else:
            self._buffer += await self._reader.readexactly(int(self.headers.get("content-length", "0")))
            self._ended = True

    async def event(self) -> Event | None:
        """Read the next event or comment; None is the end of the stream in good order."""
        assert self.headers["content-type"] == "text/event-stream", (self.status, self.headers)
        async with asyncio.timeout(PATIENCE):
            while b"\n\n" not in self._buffer:
                if self._ended:
                    assert self._buffer == b""
                    return None
                await self._more()
        block, _, self._buffer = self._buffer.partition(b"\n\n")
        event = Event(block)
        self.last_id = event.id or self.last_id
        return event

    async def piece(self) -> bytes:
        """Read what has arrived by now, with its framing; nothing else can be read from here on."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read(65536)

    async def events(self) -> list[Event]:
        """Read all events up to the end of the stream."""
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found

    async def message(self) -> Any:
        """Read the next event that carries a message."""
        while (event := await self.event()) is not None:
            if not event.is_comment and event.message is not None:
                return event.message
        raise AssertionError("the stream ended before the message came")

    async def messages(self) -> list[Any]:
        """Read all messages up to the end of the stream."""
        return [event.message for event in await self.events() if not event.is_comment and event.message]

    async def hang_up(self) -> None:
        """Close the connection, whatever is still on its way."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def closed_by_server(self) -> bool:
        """Wait until the server closes the connection."""
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionResetError):
                while await self._reader.read(65536):
                    continue
        return True


class HttpClient:
    """Opens a connection for each request, and closes them all at the end."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._responses: list[Response] = []

    async def begin(self, head: bytes) -> tuple[Response, asyncio.StreamWriter]:
        """Open a connection and send bytes; the response is not read yet."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=64 * 1024 * 1024)
        response = Response(reader, writer)
        self._responses.append(response)
        writer.write(head)
        with suppress(ConnectionError):
            await writer.drain()
        return response, writer

    def head(self, method: str, path: str, headers: Headers) -> bytes:
        """Write the first lines of a request."""
        full: Headers = {"Host": f"127.0.0.1:{self.port}", **headers}
        lines = [f"{method} {path} HTTP/1.1".encode()]
        for name, value in full.items():
            if value is not None:
                lines.append(name.encode() + b": " + (value if isinstance(value, bytes) else value.encode()))
        return b"\r\n".join(lines) + b"\r\n\r\n"

    async def request(
        self, method: str, path: str = "/mcp", headers: Headers | None = None, body: bytes = b""
    ) -> Response:
        """Send a whole request and read the head of its response."""
        full = {"Content-Length": str(len(body)), **(headers or {})}
        response, _ = await self.begin(self.head(method, path, full) + body)
        await response.begin()
        return response

    async def close(self) -> None:
        """Close every connection."""
        for response in self._responses:
            await response.hang_up()
        self._responses.clear()
