"""The busy bridge over HTTP: a real server on a real loopback socket, in the test's own event loop."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from bridgehead.mcp import Limits
from bridgehead.mcp.http import Application, application, asgi
from bridgehead.mcp.http import server as http_server
from bridgehead.mcp.http.message import Handler
from tests.support.busy_bridge import Work, make_bridge
from tests.support.http_client import Headers, HttpClient, Response
from tests.support.messages import HANDSHAKE, STATELESS, Checker, Json, encode, initialize, notification

BOTH = "application/json, text/event-stream"
JSON_POST: Headers = {"Content-Type": "application/json", "Accept": BOTH}


class Server:
    """A running server, its application and its bridge's work, and a client of it."""

    def __init__(self, app: Application, work: Work, port: int) -> None:
        self.app = app
        self.bridge = app.dispatcher.bridge
        self.work = work
        self.port = port
        self.http = HttpClient(port)
        self.checker = Checker()

    async def post(self, message: Any, headers: Headers | None = None, *, path: str = "/mcp") -> Response:
        """POST one message, or bytes as they are."""
        self.checker.note_requests(message)
        body = message if isinstance(message, bytes) else encode(message)
        return await self.http.request("POST", path, {**JSON_POST, **(headers or {})}, body)

    async def stateless(self, message: Json, headers: Headers | None = None) -> Response:
        """POST a message of the stateless era with the headers that belong to it."""
        return await self.post(message, {**mirrored(message), **(headers or {})})

    async def json(self, response: Response, status: int = 200) -> Any:
        """Read a JSON answer, check it, and return it."""
        found = await response.json()
        assert response.status == status, (response.status, found)
        self.checker.check(found)
        return found

    async def refused(self, response: Response, status: int) -> str:
        """Read a refusal and return its words."""
        answer = await self.json(response, status)
        message: str = answer["error"]["message"]
        return message

    async def session(self, version: str = HANDSHAKE, capabilities: Json | None = None) -> Headers:
        """Shake hands, and return the headers of everything that follows."""
        response = await self.post(initialize(version, capabilities))
        hello = await self.json(response)
        headers: Headers = {"Mcp-Session-Id": response.headers["mcp-session-id"]}
        if version >= "2025-06-18":
            headers["MCP-Protocol-Version"] = hello["result"]["protocolVersion"]
        accepted = await self.post(notification("notifications/initialized"), headers)
        assert (accepted.status, await accepted.body()) == (202, b"")
        return headers

    async def listen(self, session: Headers, last: str | bytes | None = None) -> Response:
        """Open a GET stream."""
        headers: Headers = {"Accept": "text/event-stream", "Last-Event-ID": last, "Content-Length": None}
        return await self.http.request("GET", headers={**session, **headers})

    async def is_alive(self) -> bool:
        """Tell whether the server still answers."""
        response = await self.post(initialize())
        return bool((await self.json(response))["result"]["protocolVersion"] == HANDSHAKE)


def mirrored(message: Json) -> Headers:
    """Make the headers that repeat a stateless message."""
    headers: Headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": message["method"]}
    params = message["params"]
    name = params.get("name", params.get("uri", params.get("taskId")))
    if name is not None:
        headers["Mcp-Name"] = name
    return headers


class _Errors(logging.Handler):
    """Keeps what the HTTP server complains about."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Listen meanwhile."""
        loggers = [logging.getLogger(name) for name in ("uvicorn.error", "bridgehead.mcp.http")]
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


@asynccontextmanager
async def own_server(
    app: Application,
    listener: socket.socket,
    wrap: Callable[[Application], Handler] = lambda app: app,
    **options: Any,
) -> AsyncIterator[None]:
    """Run an application, or what is wrapped around it, on the server of the engine."""
    server = http_server.Server(wrap(app), **options)
    await app.start()
    await server.start(listener)
    try:
        yield
    finally:
        server.stop_accepting()
        app.end_streams()
        await server.stop()
        await app.stop()


@asynccontextmanager
async def uvicorn_server(app: Application, listener: socket.socket, **options: Any) -> AsyncIterator[None]:
    """Run an application on uvicorn, which knows nothing of ours."""
    server = uvicorn.Server(uvicorn.Config(asgi(app), access_log=False, log_config=None, **options))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def serving(
    limits: Limits | None = None,
    *,
    settings: dict[str, Any] | None = None,
    complaint: str | None = None,
    run: Callable[..., AbstractAsyncContextManager[None]] = own_server,
    **options: Any,
) -> AsyncIterator[Server]:
    """Serve the busy bridge; there must be no complaint in the server's log but the one expected."""
    bridge, work = make_bridge()
    app = application(bridge, limits=limits, **options)
    errors = _Errors()
    with socket.create_server(("127.0.0.1", 0)) as listener, errors.kept():
        async with run(app, listener, **(settings or {})):
            server = Server(app, work, listener.getsockname()[1])
            try:
                yield server
            finally:
                app.end_streams()
                await server.http.close()
    assert [said for said in errors.said if complaint is None or complaint not in said] == []
    assert complaint is None or errors.said
