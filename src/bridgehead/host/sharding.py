"""Sharding: sends each request of a session to the worker that has the session.

A session's id, as clients see it, begins with the number of its worker. What belongs to no session (all of
the stateless era, and every `initialize`) is answered by whichever worker the connection came to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, MutableMapping
from typing import Any

from bridgehead.mcp import Limits
from bridgehead.mcp.http.exchange import (
    Exchange,
    Gone,
    HeaderPairs,
    Outcome,
    Receive,
    Refused,
    Scope,
    Send,
    Whole,
)

from .app import HostApplication
from .refusals import Refusal
from .siblings import SiblingGone, Siblings

SESSION = b"mcp-session-id"
_QUERY = b"session_id="
_MARK = b"~"
_MOST_DIGITS = 3


class Sharded:
    """One worker's application, which knows its siblings."""

    def __init__(self, app: HostApplication, siblings: Siblings, limits: Limits) -> None:
        self._app = app
        self._siblings = siblings
        self._limits = limits
        self._own = b"%d%b" % (siblings.index, _MARK)

    def at_once(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> Outcome:
        """Serve a request whose body is there."""
        worker = self._worker(scope)
        if worker != self._siblings.index:
            return self._passed_on(worker, scope, body, receive, send)
        outcome = self._app.at_once(scope, body, receive, self._marking(scope, send))
        return self._marked(outcome) if isinstance(outcome, Whole) else self._later(outcome)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            return  # the application's life is the other listener's, which is closed last
        worker = self._worker(scope)
        if worker == self._siblings.index:
            await self._app(scope, receive, self._marking(scope, send))
            return
        exchange = Exchange(scope, receive, send)
        refusal = await self._app.refusal(scope)
        if refusal is not None:
            await exchange.respond(refusal)
            return
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                body = await exchange.body(self._limits)
        except Gone:
            return
        except TimeoutError:
            late = Refused(408, "The body did not arrive in time")
            await exchange.respond(self._app.refuse(scope, late))
        except Refused as refused:
            await exchange.respond(self._app.refuse(scope, refused))
        else:
            await self._passed_on(worker, scope, body, receive, send)

    async def _passed_on(self, worker: int, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        try:
            await self._siblings.pass_on(worker, scope, body, receive, send)
        except SiblingGone:
            # The worker that had the session has gone, and the session with it: the client starts again.
            problem = "The session is not known, or no longer: start again with initialize"
            response = self._app.refuse(scope, Refusal(404, problem, "session"))
            await Exchange(scope, receive, send).respond(response)

    # --- ids -----------------------------------------------------------------------------------------------

    def _worker(self, scope: Scope) -> int:
        """Tell whose a request is, and take the number off the id where it is ours."""
        headers = scope["headers"]
        for position, (name, value) in enumerate(headers):
            if name == SESSION:
                number, own_id = self._split(value)
                if number == self._siblings.index:
                    headers[position] = (name, own_id)
                return number
        query = scope["query_string"]
        if query.startswith(_QUERY):
            number, own_id = self._split(query[len(_QUERY) :])
            if number == self._siblings.index:
                scope["query_string"] = _QUERY + own_id
            return number
        return self._siblings.index

    def _split(self, session: bytes) -> tuple[int, bytes]:
        number, mark, own_id = session.partition(_MARK)
        if (
            not mark
            or not number.isdigit()
            or len(number) > _MOST_DIGITS
            or int(number) >= len(self._siblings.ports)
        ):
            return self._siblings.index, session
        return int(number), own_id

    def _marking(self, scope: Scope, send: Send) -> Send:
        is_legacy = scope["path"].endswith("/sse")  # whose first event names the session

        async def marked(message: MutableMapping[str, Any]) -> None:
            nonlocal is_legacy
            if message["type"] == "http.response.start":
                message["headers"] = self._headers(message["headers"])
            elif is_legacy:
                is_legacy = False
                message["body"] = message["body"].replace(_QUERY, _QUERY + self._own, 1)
            await send(message)

        return marked

    def _headers(self, headers: HeaderPairs) -> HeaderPairs:
        return [(name, self._own + value if name == SESSION else value) for name, value in headers]

    def _marked(self, response: Whole) -> Whole:
        return response._replace(headers=self._headers(response.headers))

    async def _later(self, work: Coroutine[Any, Any, Whole | None]) -> Whole | None:
        response = await work
        return None if response is None else self._marked(response)
