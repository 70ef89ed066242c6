"""Siblings: a request that is passed on arrives as it was, and nobody else gets in by that door."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridgehead.host.siblings import FromSiblings, SiblingGone, Siblings
from bridgehead.mcp.http.server import Server
from tests.host.conftest import Dial
from tests.support.waiting import PATIENCE

SCOPE = {
    "type": "http",
    "method": "POST",
    "raw_path": b"/mcp",
    "query_string": b"a=b",
    "scheme": "https",
    "client": ("203.0.113.9", 4711),
    "headers": [
        (b"host", b"team.example"),
        (b"connection", b"close"),
        (b"x-bridgehead-client", b"http 6.6.6.6"),
    ],
}


class Sent(list[Any]):
    """What an application sends."""

    async def take(self, message: Any) -> None:
        self.append(dict(message))


class Echo:
    """An application that says what it was asked, in two pieces, and notes when its client leaves."""

    def __init__(self) -> None:
        self.scope: Any = None
        self.left = asyncio.Event()
        self.breaks = False
        self.waits = False
        self.length: int | None = None
        self.refused: list[tuple[str, str, int]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self.scope = scope
        body = (await receive())["body"]
        length = [] if self.length is None else [(b"content-length", b"%d" % self.length)]
        await send({"type": "http.response.start", "status": 201, "headers": [(b"x-own", b"1"), *length]})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if self.breaks:
            raise ValueError("in the middle")
        if self.waits:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()
        await send({"type": "http.response.body", "body": b"!"})


async def silent() -> Any:
    """Receive nothing, for as long as the client stays."""
    await asyncio.Event().wait()


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Siblings, Echo]]:
    app = Echo()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as closed:
        ports = (closed.getsockname()[1], listener.getsockname()[1])
        closed.close()
        theirs = Siblings(1, ports, b"secret")
        entrance = FromSiblings(
            theirs, app, app, lambda: b"# HELP x X.\n", lambda *what: app.refused.append(what)
        )
        server = Server(entrance, shutdown_seconds=1)
        await server.start(listener)
        try:
            yield Siblings(0, ports, b"secret"), app
        finally:
            await server.stop()


async def test_a_request_is_passed_on_in_the_name_of_its_client() -> None:
    async with pair() as (siblings, app):
        sent = Sent()
        await siblings.pass_on(1, dict(SCOPE), b"body", silent, sent.take)

    assert sent[0]["status"] == 201
    assert (b"x-own", b"1") in sent[0]["headers"]
    assert b"".join(message.get("body", b"") for message in sent) == b"body!"
    assert sent[-1]["more_body"] is False
    assert (app.scope["client"][0], app.scope["scheme"]) == ("203.0.113.9", "https")
    assert (app.scope["path"], app.scope["query_string"]) == ("/mcp", b"a=b")
    assert dict(app.scope["headers"])[b"host"] == b"team.example"


async def test_an_answer_to_head_is_passed_on_without_a_body() -> None:
    async with pair() as (siblings, app):
        sent = Sent()
        app.length = 5
        async with asyncio.timeout(PATIENCE):
            await siblings.pass_on(1, {**SCOPE, "method": "HEAD"}, b"", silent, sent.take)

    assert (b"content-length", b"5") in sent[0]["headers"]
    assert sent[1:] == [{"type": "http.response.body", "body": b"", "more_body": False}]


async def test_a_client_that_leaves_leaves_the_sibling_too() -> None:
    async with pair() as (siblings, app):
        app.waits = True

        async def gone() -> Any:
            await asyncio.sleep(0.05)
            return {"type": "http.disconnect"}

        await siblings.pass_on(1, dict(SCOPE), b"body", gone, Sent().take)
        await asyncio.wait_for(app.left.wait(), PATIENCE)


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    async with pair() as (siblings, app):
        app.breaks = True
        with pytest.raises(ConnectionResetError):
            await siblings.pass_on(1, dict(SCOPE), b"body", silent, Sent().take)


async def test_a_sibling_that_is_gone_is_told_from_one_that_answers() -> None:
    async with pair() as (siblings, _):
        with pytest.raises(SiblingGone):
            await siblings.pass_on(0, dict(SCOPE), b"", silent, Sent().take)
        assert await siblings.metrics(0) == b""
        assert await siblings.metrics(1) == b"# HELP x X.\n"


async def test_without_the_secret_the_door_is_closed(dial: Dial) -> None:
    async with pair() as (siblings, app):
        http = dial(siblings.ports[1])
        for shown in (None, "", "wrong"):
            response = await http.request("POST", "/mcp", {"x-bridgehead-sibling": shown})
            assert response.status == 403
        assert app.scope is None
        assert app.refused == [("sibling", "127.0.0.1", 403)] * 3
