"""ASGI: an adapter that lets any ASGI server (uvicorn, granian, hypercorn) run a `Handler`.

It turns a scope into a `Request`, calls the handler and sends the response. Middleware in front may set
`scope["state"]["principal"]` to the name of the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from .message import (
    BODYLESS,
    Application,
    ClientGone,
    HeaderPairs,
    Request,
    Response,
    ResponseStream,
    repeats_singleton,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_REPEATED = Response(400, b"Host, Origin and Authorization may be given once")
AsgiApplication = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


def asgi(app: Application) -> AsgiApplication:
    """Wrap an application as an ASGI application."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await _serve_request(app, AsgiRequest(scope, receive, send), send)
        elif scope["type"] == "lifespan":
            await _run_lifespan(app, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    return serve


async def _serve_request(app: Application, request: AsgiRequest, send: Send) -> None:
    try:
        response = _REPEATED if repeats_singleton(request.header_pairs) else await app(request)
    except ClientGone:
        return
    finally:
        request.stop_watching()
    if not isinstance(response, Response):
        await response.close()
        return
    headers = [*response.headers, *request.extra_headers]
    if response.status not in BODYLESS:
        headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


async def _run_lifespan(app: Application, receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            try:
                await app.start()
            except Exception as failure:
                await send({"type": "lifespan.startup.failed", "message": str(failure)})
                raise
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            app.end_streams()
            await app.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


class AsgiRequest(Request):
    """A request of an ASGI server."""

    __slots__ = ("_receive", "_send", "_watcher")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        mount = scope.get("root_path", "")
        super().__init__(
            scope["method"],
            scope.get("raw_path") or path.encode(),
            path.removeprefix(mount),
            scope.get("query_string", b""),
            scope["headers"],
        )
        self.mount = mount
        self.scheme = scope.get("scheme", "http")
        self.address = scope["client"][0] if scope.get("client") else ""
        self.principal = scope["state"].get("principal") if "state" in scope else None
        self._receive = receive
        self._send = send
        self._watcher: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """Return the next piece of the body, b"" after the last. Raises ClientGone."""
        piece = b""
        while not piece and not self.is_complete:
            event = await self._receive()
            if event["type"] != "http.request":
                self.hang_up()
                raise ClientGone
            piece = event.get("body", b"")
            self.is_complete = not event.get("more_body", False)
        return piece

    def when_gone(self, act: Callable[[], object]) -> None:
        """Call `act` if the client hangs up; in ASGI a task has to wait for that message."""
        super().when_gone(act)
        if self._watcher is None and not self.is_gone:
            self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.hang_up()

    def stop_watching(self) -> None:
        """Stop waiting for a disconnect, once the request is over."""
        if self._watcher is not None:
            self._watcher.cancel()

    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        """Send the head of a response whose body comes in pieces."""
        self.stream = stream = AsgiStream(self, self._send, status)
        if not self.is_gone:
            await self._send(
                {"type": "http.response.start", "status": status, "headers": [*headers, *self.extra_headers]}
            )
        return stream


class AsgiStream(ResponseStream):
    """A response in pieces on an ASGI server."""

    __slots__ = ("_is_closed", "_request", "_send")

    def __init__(self, request: AsgiRequest, send: Send, status: int) -> None:
        super().__init__(status)
        self._request = request
        self._send = send
        self._is_closed = False

    async def write(self, data: bytes) -> None:
        """Send a piece; the server makes the caller wait while the client is slow to read."""
        await self._send_body(data, more=True)

    async def close(self) -> None:
        """End the response; a second call does nothing."""
        if not self._is_closed:
            await self._send_body(b"", more=False)
            self._is_closed = True

    async def _send_body(self, data: bytes, *, more: bool) -> None:
        if self._request.is_gone or self._is_closed:
            return
        try:
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except OSError:  # ASGI 2.4: the client has disconnected
            self._request.hang_up()
