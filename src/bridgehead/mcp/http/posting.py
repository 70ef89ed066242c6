"""Posting: the messages that clients of both eras post to one URL, and the responses they get.

A POST carries one message; its headers and its body say which era it belongs to. As in the dispatcher, what
can be answered at once is, and only what has to wait becomes a coroutine.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import UNSET

from .. import jsonrpc
from ..batches import take_batch
from ..connection import Connection, Nowhere, overload
from ..dispatch import Dispatcher
from ..errors import ProtocolError
from ..methods.request import read
from ..revisions import HANDSHAKE, STATELESS, V2026_07_28
from .exchange import Exchange, HeaderPairs, Outcome, Refused, Whole, busy, status_of
from .guard import check_json
from .mirrored import check_mirrored
from .response import Response
from .sessions import Session, Sessions
from .watch import Watch

STATELESS_NAMES = {name.encode() for name in STATELESS}
HANDSHAKE_NAMES = {name.encode() for name in HANDSHAKE}
ACCEPTED = Whole(202)


class Posting:
    """Takes what is posted to one endpoint."""

    def __init__(self, dispatcher: Dispatcher, sessions: Sessions, retry_ms: int) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._sessions = sessions
        self._retry_ms = retry_ms
        self._in_flight = 0
        self._watch = Watch()

    def admit(self, exchange: Exchange) -> None:
        """Refuse a POST by its headers, or because there is no room for it."""
        exchange.prefers_events = check_json(exchange.headers).prefers_events
        exchange.check_length(self._limits)
        if self._in_flight >= self._limits.http_requests_in_flight:
            raise busy()

    async def body(self, exchange: Exchange) -> bytes:
        """Read the body of a POST."""
        self._begin(exchange)
        try:
            return await exchange.body(self._limits)
        finally:
            self._end(exchange)

    def _begin(self, exchange: Exchange) -> None:
        """Count a POST that takes more than a moment, and watch for its client hanging up."""
        self._in_flight += 1
        self._watch.enter(exchange)

    def _end(self, exchange: Exchange) -> None:
        self._watch.leave(exchange)
        self._in_flight -= 1

    def take(self, exchange: Exchange, body: bytes) -> Outcome:
        """Take what was posted."""
        message = jsonrpc.decode(body)
        if isinstance(message, jsonrpc.Message):
            if self._is_stateless(exchange, message):
                return self._take_stateless(exchange, message)
            return self._take_in_session(exchange, message)
        if isinstance(message, jsonrpc.Malformed):
            return Whole.json(jsonrpc.error(message.id, message.error), 400)
        return self._take_batch(exchange, message)

    def _is_stateless(self, exchange: Exchange, message: jsonrpc.Message) -> bool:
        """Tell the era of a message: by its header, or by what its body declares."""
        version = exchange.headers.get(b"mcp-protocol-version")
        if version in STATELESS_NAMES:
            return True
        if message.id is UNSET or message.method is UNSET:
            return False
        if version is not None and version not in HANDSHAKE_NAMES:
            return True
        if message.params is UNSET or b"io.modelcontextprotocol/protocolVersion" not in bytes(message.params):
            return False
        meta = read(message.id, message.method, message.params).params.meta
        return meta is not None and meta.protocol_version is not UNSET

    # --- the stateless era ---------------------------------------------------------------------------------

    def _take_stateless(self, exchange: Exchange, message: jsonrpc.Message) -> Outcome:
        if message.method is UNSET:
            raise Refused(
                400, "A response cannot be posted: there are no requests from this server to answer"
            )
        if message.id is UNSET:
            return ACCEPTED
        connection = Connection(self._limits, exchange.principal)
        response = Response(exchange, connection)
        request = read(message.id, message.method, message.params)

        def fail(failure: ProtocolError) -> Outcome:
            answer = jsonrpc.error(request.id, failure)
            return response.finish(answer, status_of(failure, stateless=True))

        try:
            check_mirrored(request, exchange.headers, self._dispatcher.bridge)
            work = self._dispatcher.serve(request, connection, response, V2026_07_28)
        except ProtocolError as failure:
            return fail(failure)
        return response.finish(work) if isinstance(work, bytes) else self._finish(response, work, fail)

    # --- the handshake era ---------------------------------------------------------------------------------

    def _take_in_session(self, exchange: Exchange, message: jsonrpc.Message) -> Outcome:
        check_version(exchange)
        headers: HeaderPairs = ()
        if message.method == "initialize" and message.id is not UNSET:
            session = self._sessions.open(exchange.principal)
            headers = ((b"mcp-session-id", session.id.encode()),)
        else:
            session = self._sessions.of(exchange)
        if message.method is UNSET or message.id is UNSET:
            self._dispatcher.take(message, session.connection, Nowhere())
            return ACCEPTED
        return self._serve_in_session(exchange, session, message, headers)

    def _serve_in_session(
        self, exchange: Exchange, session: Session, message: Any, headers: HeaderPairs
    ) -> Outcome:
        request = read(message.id, message.method, message.params)
        response = self._response(exchange, session, headers)

        def fail(failure: ProtocolError) -> Outcome:
            answer, status = jsonrpc.error(request.id, failure), status_of(failure, stateless=False)
            if request.name == "initialize":
                self._sessions.close(session)
                return Whole.json(answer, status)
            return response.finish(answer, status)

        try:
            if session.connection.is_busy:
                raise overload()
            work = self._dispatcher.serve(request, session.connection, response)
        except ProtocolError as failure:
            return fail(failure)
        if isinstance(work, bytes):
            return response.finish(work)
        return self._sessions.during(session, self._finish(response, work, fail))

    def _response(self, exchange: Exchange, session: Session, headers: HeaderPairs = ()) -> Response:
        return Response(
            exchange,
            session.connection,
            headers=headers,
            open_stream=session.open_stream,
            retry_ms=self._retry_ms,
        )

    def _take_batch(self, exchange: Exchange, batch: jsonrpc.Batch) -> Outcome:
        if exchange.headers.get(b"mcp-session-id") is None:
            raise Refused(400, "Batches exist only in protocol revision 2025-03-26, within a session")
        session = self._sessions.of(exchange)
        if session.connection.is_busy:
            raise busy()
        response = self._response(exchange, session)
        reply = take_batch(self._dispatcher, batch, session.connection, response)
        if reply is None:
            return ACCEPTED
        if isinstance(reply, bytes):
            return response.finish(reply, 400)
        return self._sessions.during(session, self._finish(response, reply))

    async def _finish(
        self,
        response: Response,
        work: Coroutine[Any, Any, bytes | None],
        fail: Callable[[ProtocolError], Outcome] | None = None,
    ) -> Whole | None:
        """Do the work, and make a response of its answer or of its failure."""
        self._begin(response.exchange)
        try:
            outcome = response.finish(await response.run(work))
        except ProtocolError as failure:
            if fail is None:
                raise
            outcome = fail(failure)
        finally:
            self._end(response.exchange)
        return outcome if isinstance(outcome, Whole) else await outcome


def check_version(exchange: Exchange) -> None:
    """Refuse a version header that names no revision of the handshake era."""
    version = exchange.headers.get(b"mcp-protocol-version")
    if version is not None and version not in HANDSHAKE_NAMES:
        known = ", ".join([*HANDSHAKE, *STATELESS])
        raise Refused(400, f"MCP-Protocol-Version {version.decode('latin-1')!r} is not one of {known}")
