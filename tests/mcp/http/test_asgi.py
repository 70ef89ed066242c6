"""ASGI: the adapter on servers that nobody here wrote; most tests of the transport run through it as well."""

import asyncio
from typing import Any

import pytest

from bridgehead.mcp.http import asgi
from bridgehead.mcp.http.message import Request, Response
from tests.support.http_server import serving, uvicorn_server
from tests.support.messages import call, request, stateless, text
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("protocol", ["httptools", "h11"])
async def test_a_bridge_runs_on_uvicorn(protocol: str) -> None:
    async with serving(run=uvicorn_server, settings={"http": protocol}) as server:
        session = await server.session()
        asked = request("tools/call", call("count", {"n": 3}, progress=1), 1)
        messages = await (await server.post(asked, session)).messages()
        assert text(messages[-1]) == "counted to 3"
        stream = await server.listen(session)
        server.bridge.changed.tools()
        assert (await stream.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("protocol", ["httptools", "h11"])
async def test_a_client_of_uvicorn_that_hangs_up_cancels_its_call(protocol: str) -> None:
    async with serving(run=uvicorn_server, settings={"http": protocol}) as server:
        response = await server.stateless(stateless("tools/call", call("wait", progress=1), 1))
        assert (await response.message())["method"] == "notifications/progress"
        await response.hang_up()
        await asyncio.wait_for(server.work.idle.wait(), PATIENCE)
        assert server.work.cancelled == 1


class Living:
    """An application that notes what becomes of it."""

    def __init__(self, problem: str = "") -> None:
        self.calls: list[str] = []
        self._problem = problem

    async def __call__(self, request: Request) -> Response:
        return Response(200, b"here")

    async def start(self) -> None:
        if self._problem:
            raise RuntimeError(self._problem)
        self.calls.append("start")

    def end_streams(self) -> None:
        self.calls.append("end streams")

    async def stop(self) -> None:
        self.calls.append("stop")


async def exchange(app: Living, scope: dict[str, Any], *events: str) -> list[Any]:
    """Send events to the ASGI application, and return what it sends."""
    sent: list[Any] = []
    waiting = list(events)

    async def receive() -> dict[str, Any]:
        return {"type": waiting.pop(0)}

    async def send(message: Any) -> None:
        sent.append(message)

    await asgi(app)(scope, receive, send)
    return sent


async def test_the_life_of_an_application_is_that_of_its_server() -> None:
    app = Living()
    sent = await exchange(app, {"type": "lifespan"}, "lifespan.startup", "lifespan.shutdown")
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert app.calls == ["start", "end streams", "stop"]


async def test_an_application_that_cannot_start_says_why() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(RuntimeError, match="far side"):
        await asgi(Living("the far side is missing"))({"type": "lifespan"}, receive, send)
    assert sent == [{"type": "lifespan.startup.failed", "message": "the far side is missing"}]


async def test_a_websocket_is_refused() -> None:
    sent = await exchange(Living(), {"type": "websocket"}, "websocket.connect")
    assert sent == [{"type": "websocket.close", "code": 1000}]


async def test_a_mounted_application_sees_the_path_below_its_mount() -> None:
    seen: list[Request] = []

    class Noting(Living):
        async def __call__(self, request: Request) -> Response:
            seen.append(request)
            return await super().__call__(request)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/tools/mcp",
        "root_path": "/tools",
        "headers": [],
        "state": {"principal": "alice"},
    }
    sent = await exchange(Noting(), scope)
    assert [message.get("status") for message in sent] == [200, None]
    assert (seen[0].path, seen[0].mount, seen[0].principal) == ("/mcp", "/tools", "alice")
