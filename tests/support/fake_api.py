"""The fake HTTP API of the tests: a function answers, and every request is kept.

For far sides that send well-formed HTTP. Bytes that no server would send are written with `tcp.serving`.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

from tests.support.tcp import serving
from tests.support.waiting import PATIENCE


class Request(NamedTuple):
    """One request; the names of headers are in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    arrived: float
    """When its head came, by `time.monotonic`."""


class Answer(NamedTuple):
    """What is sent back."""

    status: int = 200
    body: bytes = b""
    closes: bool = False
    """Whether the connection ends with it, for clients that would leave theirs open."""


Respond = Callable[[Request], Awaitable[Answer | None]]
"""Answers a request; None closes the connection without an answer."""


class FakeApi:
    """The API, and what it was asked."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self.requests: list[Request] = []
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        while True:
            request = await read_request(reader)
            self.requests.append(request)
            answer = await self._respond(request)
            if answer is None:
                return
            is_last = answer.closes or request.headers.get("connection", "").lower() == "close"
            writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n" % (answer.status, len(answer.body)))
            writer.write((b"connection: close\r\n\r\n" if is_last else b"\r\n") + answer.body)
            await writer.drain()
            if is_last:
                return


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read one request with the body that its length announces."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    arrived = time.monotonic()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, path, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body, arrived)


@asynccontextmanager
async def fake_api(respond: Respond) -> AsyncIterator[FakeApi]:
    """Run an API in the loop of the test."""
    api = FakeApi(respond)
    async with serving(api.serve) as api.port:
        yield api


@contextmanager
def running_in_thread(api: FakeApi) -> Iterator[None]:
    """Run an API beside a test that has no loop, or blocks it."""
    loop, is_ready, is_over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with serving(api.serve) as api.port:
            is_ready.set()
            await is_over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert is_ready.wait(PATIENCE)
        yield
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
        loop.close()
