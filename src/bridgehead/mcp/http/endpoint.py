"""Endpoint: Streamable HTTP at one URL, for the clients of both eras at once.

A POST carries one message; its headers and its body say which era it belongs to. GET and DELETE exist only
in the handshake era: the stream of what belongs to no request, the resuming of a broken one, the end of a
session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from msgspec import UNSET

from .. import jsonrpc
from ..connection import OVERLOAD, Connection
from ..dispatch import Dispatcher
from ..errors import ProtocolError
from ..request import Request, read
from ..versions import HANDSHAKE, STATELESS, V2026_07_28
from .events import KEEP_ALIVE, EventStream
from .exchange import Exchange, Refused, status_of
from .guard import Guard, accepted, check_json
from .mirrored import check_mirrored
from .response import Response
from .sessions import Session, Sessions
from .watch import Watch

_STATELESS_NAMES = {name.encode() for name in STATELESS}
_HANDSHAKE_NAMES = {name.encode() for name in HANDSHAKE}


class Endpoint:
    """Serves one dispatcher at one URL."""

    def __init__(self, dispatcher: Dispatcher, guard: Guard, *, retry_ms: int = 1000) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._guard = guard
        self._retry_ms = retry_ms
        self._in_flight = 0
        self._watch = Watch()
        self.sessions = Sessions(self._limits, lambda session: dispatcher.disconnect(session.connection))

    async def serve(self, exchange: Exchange) -> None:
        """Serve one HTTP request."""
        method = exchange.scope["method"]
        self._guard.check(exchange.headers)
        if method == "POST":
            await self._post(exchange)
        elif method == "GET":
            await self._get(exchange)
        elif method == "DELETE":
            await self._delete(exchange)
        else:
            raise Refused(405, f"{method} is not used here", headers=[(b"allow", b"GET, POST, DELETE")])

    def end_streams(self) -> None:
        """End the streams that would never end by themselves, because the server is going."""
        self._dispatcher.end_streams()
        self.sessions.end_general_streams()

    def close(self) -> None:
        """End every session and everything done for it."""
        self.sessions.close_all()

    # --- POST ----------------------------------------------------------------------------------------------

    async def _post(self, exchange: Exchange) -> None:
        exchange.prefers_events = check_json(exchange.headers).prefers_events
        if self._in_flight >= self._limits.http_requests_in_flight:
            raise Refused(503, OVERLOAD.message, code=OVERLOAD.code, headers=[(b"retry-after", b"1")])
        self._in_flight += 1
        self._watch.enter(exchange)
        try:
            message = jsonrpc.decode(await exchange.body(self._limits))
            if isinstance(message, jsonrpc.Malformed):
                await exchange.answer(jsonrpc.error(message.id, message.error), 400)
            elif isinstance(message, jsonrpc.Batch):
                await self._take_batch(exchange, message)
            elif self._is_stateless(exchange, message):
                await self._take_stateless(exchange, message)
            else:
                await self._take_in_session(exchange, message)
        finally:
            self._watch.leave(exchange)
            self._in_flight -= 1

    def _is_stateless(self, exchange: Exchange, message: jsonrpc.Message) -> bool:
        """Tell the era of a message: by its header, or by what its body declares."""
        version = exchange.headers.get(b"mcp-protocol-version")
        if version in _STATELESS_NAMES:
            return True
        if message.id is UNSET or message.method is UNSET:
            return False
        if version is not None and version not in _HANDSHAKE_NAMES:
            return True
        if message.params is UNSET or b"io.modelcontextprotocol/protocolVersion" not in bytes(message.params):
            return False
        meta = read(message.id, message.method, message.params).params.meta
        return meta is not None and meta.protocol_version is not UNSET

    # --- the stateless era ---------------------------------------------------------------------------------

    async def _take_stateless(self, exchange: Exchange, message: jsonrpc.Message) -> None:
        if message.method is UNSET:
            raise Refused(
                400, "A response cannot be posted: there are no requests from this server to answer"
            )
        if message.id is UNSET:
            await exchange.respond(202)
            return
        connection = Connection(self._limits, exchange.principal)
        response = Response(exchange, connection)
        request = read(message.id, message.method, message.params)
        try:
            check_mirrored(request, exchange.headers, self._dispatcher.bridge)
            work = self._dispatcher.serve(request, connection, response, V2026_07_28)
            answer = work if isinstance(work, bytes) else await response.run(work)
        except ProtocolError as failure:
            await response.finish(jsonrpc.error(message.id, failure), status_of(failure, stateless=True))
        else:
            await response.finish(answer)

    # --- the handshake era ---------------------------------------------------------------------------------

    async def _take_in_session(self, exchange: Exchange, message: jsonrpc.Message) -> None:
        self._check_version(exchange)
        if message.method == "initialize" and message.id is not UNSET:
            session = self.sessions.open(exchange.principal)
            headers = [(b"mcp-session-id", session.id.encode())]
        else:
            session = self.sessions.of(exchange)
            headers = []
        session.in_use += 1
        try:
            if message.method is UNSET or message.id is UNSET:
                self._dispatcher.take(message, session.connection, _Nowhere())
                await exchange.respond(202)
            else:
                request = read(message.id, message.method, message.params)
                await self._serve_in_session(exchange, session, request, headers)
        finally:
            self.sessions.released(session)

    @staticmethod
    def _check_version(exchange: Exchange) -> None:
        version = exchange.headers.get(b"mcp-protocol-version")
        if version is not None and version not in _HANDSHAKE_NAMES:
            known = ", ".join([*HANDSHAKE, *STATELESS])
            raise Refused(400, f"MCP-Protocol-Version {version.decode('latin-1')!r} is not one of {known}")

    async def _serve_in_session(
        self, exchange: Exchange, session: Session, request: Request, headers: list[tuple[bytes, bytes]]
    ) -> None:
        response = self._response(exchange, session, headers)
        try:
            if session.connection.is_busy:
                raise OVERLOAD
            work = self._dispatcher.serve(request, session.connection, response)
            answer = work if isinstance(work, bytes) else await response.run(work)
        except ProtocolError as failure:
            answer = jsonrpc.error(request.id, failure)
            if request.name == "initialize":
                self.sessions.close(session)
                await exchange.answer(answer, status_of(failure, stateless=False))
            else:
                await response.finish(answer, status_of(failure, stateless=False))
        else:
            await response.finish(answer)

    def _response(
        self, exchange: Exchange, session: Session, headers: list[tuple[bytes, bytes]] | None = None
    ) -> Response:
        return Response(
            exchange,
            session.connection,
            headers=headers,
            open_stream=session.open_stream,
            retry_ms=self._retry_ms,
        )

    async def _take_batch(self, exchange: Exchange, batch: jsonrpc.Batch) -> None:
        if exchange.headers.get(b"mcp-session-id") is None:
            raise Refused(400, "Batches exist only in protocol revision 2025-03-26, within a session")
        session = self.sessions.of(exchange)
        with self.sessions.using(session):
            response = self._response(exchange, session)
            reply = self._dispatcher.take_batch(batch, session.connection, response)
            if reply is None:
                await exchange.respond(202)
            elif isinstance(reply, bytes):
                await response.finish(reply, 400)
            else:
                await response.finish(await response.run(reply))

    # --- GET -----------------------------------------------------------------------------------------------

    async def _get(self, exchange: Exchange) -> None:
        if exchange.headers.get(b"mcp-protocol-version") in _STATELESS_NAMES:
            raise Refused(405, "There is no GET stream in this revision; use subscriptions/listen")
        if not accepted(exchange.headers.get(b"accept")).events:
            raise Refused(406, "Accept must list text/event-stream")
        self._check_version(exchange)
        session = self.sessions.of(exchange)
        last = exchange.headers.get(b"last-event-id")
        stream, position = (
            (session.general, None) if last is None else session.position(last.decode("latin-1"))
        )
        with self.sessions.using(session):
            await self._follow(exchange, session, stream, stream.last if position is None else position)

    async def _follow(self, exchange: Exchange, session: Session, stream: EventStream, position: int) -> None:
        """Deliver a stream from a position on, until it ends, its client hangs up, or another takes over."""
        stream.reader = reader = object()
        async with self._while_connected(exchange) as connected, self._announcing(session, stream):
            await exchange.open_events()
            while connected() and stream.reader is reader:
                for number, data in stream.after(position):
                    await exchange.event(data)
                    position = number
                if stream.has_ended:
                    break
                if not await stream.more(self._limits.keep_alive_seconds):
                    await exchange.event(KEEP_ALIVE)
            await exchange.close_events()
        if stream.reader is reader:
            stream.reader = None

    @asynccontextmanager
    async def _while_connected(self, exchange: Exchange) -> AsyncIterator[Any]:
        """Cancel what is inside when the client hangs up, and go on after it."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        hung_up = False

        async def watch() -> None:
            nonlocal hung_up
            await exchange.gone()
            hung_up = True
            task.cancel()

        watcher = asyncio.get_running_loop().create_task(watch())
        try:
            yield lambda: not hung_up
        except asyncio.CancelledError:
            if not hung_up:
                raise
            task.uncancel()
        finally:
            watcher.cancel()

    @asynccontextmanager
    async def _announcing(self, session: Session, stream: EventStream) -> AsyncIterator[None]:
        """While the general stream is being delivered, let the changes for its client flow into it."""
        listener = session.connection.listener
        if stream is not session.general or listener is None:
            yield
            return
        if session.announcer is not None:  # only one may listen, or the other would take its changes
            session.announcer.cancel()
        announcing = self._dispatcher.announce(listener, _Into(stream))
        session.announcer = announcer = asyncio.get_running_loop().create_task(announcing)
        try:
            yield
        finally:
            announcer.cancel()
            if session.announcer is announcer:
                session.announcer = None

    # --- DELETE --------------------------------------------------------------------------------------------

    async def _delete(self, exchange: Exchange) -> None:
        if exchange.headers.get(b"mcp-protocol-version") in _STATELESS_NAMES:
            raise Refused(405, "There are no sessions in this revision")
        self.sessions.close(self.sessions.of(exchange))
        await exchange.respond(204)


class _Into:
    """An outlet that writes into an event stream."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def send(self, message: bytes) -> None:
        self._stream.append(message)

    async def close_stream(self) -> None:
        """Nothing to let go of."""


class _Nowhere:
    """An outlet for messages that never cause any."""

    async def send(self, message: bytes) -> None:
        """Nothing is sent for a notification or an answer."""

    async def close_stream(self) -> None:
        """Nothing to let go of."""
