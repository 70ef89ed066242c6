"""An ASGI server on ours: lets the tests of the transport run an application through the ASGI adapter too."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

from bridgehead.mcp.http.asgi import AsgiApplication
from bridgehead.mcp.http.message import ClientGone, Request, Response, ResponseStream

ASGI = {"version": "3.0", "spec_version": "2.4"}


class AsgiRunner:
    """A handler that runs an ASGI application for every request."""

    def __init__(self, app: AsgiApplication) -> None:
        self._app = app

    async def __call__(self, request: Request) -> Response | ResponseStream:
        """Run the application, and give what it sent."""
        exchange = _Exchange(request)
        await self._app(_scope(request), exchange.receive, exchange.send)
        if exchange.response is None:
            raise ClientGone
        return exchange.response


def _scope(request: Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": ASGI,
        "http_version": "1.1",
        "method": request.method,
        "path": request.path,
        "raw_path": request.raw_path,
        "query_string": request.query,
        "root_path": "",
        "headers": request.header_pairs,
        "scheme": request.scheme,
        "client": (request.address, 0),
        "state": {},
    }


class _Exchange:
    """`receive` and `send` of one request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._is_read = False
        self._gone = asyncio.Event()
        self._head: tuple[int, Any] = (500, ())
        self._stream: ResponseStream | None = None
        self.response: Response | ResponseStream | None = None
        request.when_gone(self._gone.set)

    async def receive(self) -> MutableMapping[str, Any]:
        if not self._is_read:
            try:
                piece = await self._request.read()
            except ClientGone:
                return {"type": "http.disconnect"}
            self._is_read = not piece
            return {"type": "http.request", "body": piece, "more_body": bool(piece)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._head = message["status"], message["headers"]
            is_whole = any(name == b"content-length" for name, _ in self._head[1])
            if not is_whole and message["status"] not in (204, 304):
                self.response = self._stream = await self._request.open_stream(*self._head)
        elif self._stream is None:
            pairs = [pair for pair in self._head[1] if pair[0] != b"content-length"]
            self.response = Response(self._head[0], message["body"], pairs)
        else:
            await self._stream.write(message["body"])
            if not message.get("more_body"):
                await self._stream.close()
