"""Visit: one HTTP request to the host, from its headers to its end."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from bridgehead.mcp.http.exchange import HeaderPairs, Receive, Scope, Send, Whole

from . import cors
from .grants import Grant
from .request_ids import HEADER


class Visit:
    """What is known of one request, and what every answer to it carries."""

    __slots__ = (
        "_send",
        "address",
        "counted_as",
        "grant",
        "headers",
        "id",
        "is_over",
        "method",
        "origin",
        "path",
        "reason",
        "scheme",
        "scope",
        "started",
        "status",
        "task",
    )

    def __init__(self, scope: Scope, headers: dict[bytes, bytes], request_id: str, started: float) -> None:
        self.scope = scope
        self.headers = headers
        self.id = request_id
        self.started = started
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.address = ""
        self.scheme: str = scope["scheme"]
        self.counted_as = "other"
        """The path as it is counted: one of a few."""
        self.origin: bytes | None = None
        """The page that asks, once it is known that it may."""
        self.grant: Grant | None = None
        self.reason = ""
        """Why it was refused, in one word."""
        self.status = 0
        """The status of an answer that is being sent in pieces; 0 before it begins."""
        self.is_over = False
        """Whether its caller may no longer be served."""
        self.task: asyncio.Task[Any] | None = None
        self._send: Send | None = None

    @property
    def extra(self) -> HeaderPairs:
        """The headers that every answer to this request has."""
        own = (HEADER, self.id.encode())
        return (own,) if self.origin is None else (own, *cors.readable_by(self.origin))

    def marked(self, response: Whole) -> Whole:
        """Give a response with the headers that every answer has."""
        return Whole(response.status, response.body, (*response.headers, *self.extra))

    def through(self, send: Send) -> Send:
        """Return what an answer in pieces is sent through, which marks it too."""
        self._send = send
        return self._marking

    async def _marking(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = (*message["headers"], *self.extra)
        assert self._send is not None  # noqa: S101 - `through` gave it
        await self._send(message)

    async def respond(self, response: Whole, send: Send) -> None:
        """Send a whole response."""
        headers = response.header_pairs()
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    def end(self) -> None:
        """Stop serving it: its caller's token holds no longer."""
        if self.task is not None and not self.is_over:
            self.is_over = True
            self.task.cancel()

    async def end_stream(self) -> None:
        """End an answer that has begun."""
        assert self._send is not None  # noqa: S101 - it was sent through
        await self._send({"type": "http.response.body", "body": b""})


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was taken already once more, and then what comes after it."""
    is_given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
