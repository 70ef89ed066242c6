"""Endpoint: Streamable HTTP at one URL, for the clients of both eras at once.

A POST carries one message; its headers and its body say which era it belongs to. As in the dispatcher, what
can be answered at once is, and only what has to wait becomes a coroutine. GET and DELETE exist only in the
handshake era: the stream of what belongs to no request, and the end of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from msgspec import UNSET

from .. import jsonrpc
from ..connection import Connection, NullOutlet, overload
from ..dispatch import Dispatcher
from ..errors import ProtocolError
from ..methods.request import read
from ..revisions import HANDSHAKE, STATELESS, V2026_07_28
from .answer import Answer
from .callers import Callers, Share, caller_of
from .get_stream import GetStreams
from .guard import Guard, accepted, check_json, check_length, read_body, whole_body
from .message import NO_CONTENT, Handled, HeaderPairs, Request, Response, ResponseStream
from .mirrored_headers import check_mirrored
from .rejection import Rejection, reject_busy, reject_method, status_of
from .sessions import Session, Sessions

STATELESS_NAMES = {name.encode() for name in STATELESS}
HANDSHAKE_NAMES = {name.encode() for name in HANDSHAKE}
ACCEPTED = Response(202)

Work = Coroutine[Any, Any, bytes | None]
Fail = Callable[[ProtocolError], Handled]


class Endpoint:
    """Serves one dispatcher at one URL."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        guard: Guard,
        callers: Callers,
        *,
        retry_ms: int = 1000,
        session_prefix: str = "",
    ) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._guard = guard
        self._retry_ms = retry_ms
        self._in_flight = 0
        self._callers = callers
        self._streams = GetStreams(dispatcher, callers)
        self.sessions = Sessions(
            self._limits, callers, lambda session: dispatcher.disconnect(session.connection), session_prefix
        )

    def __call__(self, request: Request) -> Handled:
        """Serve one request. Raises Rejection where that takes no waiting to find out."""
        self._guard.check(request.headers)
        if request.method == "POST":
            return self._post(request)
        if request.method == "GET":
            return self._get(request)
        if request.method == "DELETE":
            return self._delete(request)
        raise reject_method(f"{request.method} is not used here", b"GET, POST, DELETE")

    def end_streams(self) -> None:
        """End the streams that would never end by themselves, because the server is going."""
        self._dispatcher.end_streams()
        self.sessions.end_general_streams()

    def close(self) -> None:
        """End every session and everything done for it."""
        self.sessions.close_all()

    # --- GET and DELETE ------------------------------------------------------------------------------------

    def _get(self, request: Request) -> Handled:
        if request.headers.get(b"mcp-protocol-version") in STATELESS_NAMES:
            raise reject_method("There is no GET stream in this revision; use subscriptions/listen", b"POST")
        if not accepted(request.headers.get(b"accept")).events:
            raise Rejection(406, "Accept must list text/event-stream")
        _check_version(request)
        if b"mcp-session-id" not in request.headers:  # some clients probe for a stream before anything else
            raise reject_method("There is no stream without a session: send initialize first", b"POST")
        return self._streams.open(request, self.sessions.find(request))

    def _delete(self, request: Request) -> Response:
        if request.headers.get(b"mcp-protocol-version") in STATELESS_NAMES:
            raise reject_method("There are no sessions in this revision", b"POST")
        self.sessions.close(self.sessions.find(request))
        return Response(NO_CONTENT)

    # --- POST ----------------------------------------------------------------------------------------------

    def _post(self, request: Request) -> Handled:
        check_json(request.headers)
        if self._in_flight >= self._limits.http_requests_in_flight:
            raise reject_busy()
        if self._callers.requests.open:
            self._callers.requests.check(caller_of(request))
        if request.is_complete:
            return self._take(request, whole_body(request, self._limits))
        check_length(request.headers, self._limits)
        return self._read_and_take(request)

    async def _read_and_take(self, request: Request) -> Response | ResponseStream:
        caller = caller_of(request)
        try:
            self._in_flight += 1
            self._callers.requests.take(caller)
            try:
                body = await read_body(request, self._limits)
            finally:
                self._callers.requests.give_back(caller)
                self._in_flight -= 1
            request.body = body  # for a log line that looks for the trace in it
            outcome = self._take(request, body)
        except Rejection as rejection:
            return rejection.response
        return outcome if isinstance(outcome, Response) else await outcome

    def _take(self, request: Request, body: bytes) -> Handled:
        message = jsonrpc.decode(body)
        if isinstance(message, jsonrpc.Message):
            if self._is_stateless(request, message):
                return self._take_stateless(request, message)
            return self._take_in_session(request, message)
        if isinstance(message, jsonrpc.Malformed):
            return Response.json(jsonrpc.error(message.id, message.error), 400)
        return self._take_batch(request, message)

    def _is_stateless(self, request: Request, message: jsonrpc.Message) -> bool:
        """Tell the era of a message: by its header, or by what its body declares."""
        version = request.headers.get(b"mcp-protocol-version")
        if version in STATELESS_NAMES:
            return True
        if message.id is UNSET or message.method is UNSET:
            return False
        if version is not None and version not in HANDSHAKE_NAMES:
            return True
        if message.params is UNSET or b"io.modelcontextprotocol/protocolVersion" not in bytes(message.params):
            return False
        meta = read(message.id, message.method, message).params.meta
        return meta is not None and meta.protocol_version is not UNSET

    # --- the stateless era ---------------------------------------------------------------------------------

    def _take_stateless(self, request: Request, message: jsonrpc.Message) -> Handled:
        if message.method is UNSET:
            raise Rejection(
                400, "A response cannot be posted: there are no requests from this server to answer"
            )
        if message.id is UNSET:
            return ACCEPTED
        share = self._callers.requests
        if message.method == "subscriptions/listen":
            share = self._callers.streams
            share.check(caller_of(request))
        connection = Connection(self._limits, request.principal)
        answer = Answer(request, connection)
        asked = read(message.id, message.method, message)
        try:
            check_mirrored(asked, request.headers, self._dispatcher.bridge)
            work = self._dispatcher.handle_request(asked, connection, answer, V2026_07_28)
        except ProtocolError as failure:
            return _fail_stateless(answer, asked.id, failure)
        if isinstance(work, bytes):
            return answer.finish(work)
        return self._finish(
            answer, work, share, caller_of(request), partial(_fail_stateless, answer, asked.id)
        )

    # --- the handshake era ---------------------------------------------------------------------------------

    def _take_in_session(self, request: Request, message: jsonrpc.Message) -> Handled:
        _check_version(request)
        headers: HeaderPairs = ()
        if message.method == "initialize" and message.id is not UNSET:
            session = self.sessions.open(request)
            headers = ((b"mcp-session-id", session.id.encode()),)
        else:
            session = self.sessions.find(request)
        if message.method is UNSET or message.id is UNSET:
            self._dispatcher.handle_message(message, session.connection, NullOutlet())
            return ACCEPTED
        return self._serve_in_session(request, session, message, headers)

    def _serve_in_session(
        self, request: Request, session: Session, message: Any, headers: HeaderPairs
    ) -> Handled:
        asked = read(message.id, message.method, message)
        answer = self._answer(request, session, headers)
        try:
            if session.connection.is_busy:
                raise overload()
            work = self._dispatcher.handle_request(asked, session.connection, answer)
        except ProtocolError as failure:
            return self._fail_in_session(session, answer, asked, failure)
        if isinstance(work, bytes):
            return answer.finish(work)
        fail = partial(self._fail_in_session, session, answer, asked)
        return self._finish(answer, work, self._callers.requests, session.caller, fail, session)

    def _fail_in_session(
        self, session: Session, answer: Answer, asked: Any, failure: ProtocolError
    ) -> Handled:
        told, status = jsonrpc.error(asked.id, failure), status_of(failure, stateless=False)
        if asked.name == "initialize":
            self.sessions.close(session)
            return Response.json(told, status)
        return answer.finish(told, status)

    def _answer(self, request: Request, session: Session, headers: HeaderPairs = ()) -> Answer:
        return Answer(
            request,
            session.connection,
            headers=headers,
            open_kept=session.open_stream,
            retry_ms=self._retry_ms,
        )

    def _take_batch(self, request: Request, batch: jsonrpc.Batch) -> Handled:
        if request.headers.get(b"mcp-session-id") is None:
            raise Rejection(400, "Batches exist only in protocol revision 2025-03-26, within a session")
        session = self.sessions.find(request)
        if session.connection.is_busy:
            raise reject_busy()
        answer = self._answer(request, session)
        reply = self._dispatcher.handle_batch(batch, session.connection, answer)
        if reply is None:
            return ACCEPTED
        if isinstance(reply, bytes):
            return answer.finish(reply, 400)
        return self._finish(answer, reply, self._callers.requests, session.caller, session=session)

    async def _finish(
        self,
        answer: Answer,
        work: Work,
        share: Share,
        caller: str,
        fail: Fail | None = None,
        session: Session | None = None,
    ) -> Response | ResponseStream:
        """Do the work, and make a response of its answer or of its failure."""
        # One coroutine for everything that surrounds the work: each frame more is paid at every wake-up.
        self._in_flight += 1
        share.take(caller)
        if session is not None:
            session.in_use += 1
        answer.watch_client()
        try:
            try:
                outcome = answer.finish(await work)
            except ProtocolError as failure:
                if fail is None:
                    raise
                outcome = fail(failure)
            return outcome if isinstance(outcome, Response) else await outcome
        finally:
            answer.stop()
            share.give_back(caller)
            self._in_flight -= 1
            if session is not None:
                session.release()


def _fail_stateless(answer: Answer, request_id: jsonrpc.RequestId, failure: ProtocolError) -> Handled:
    return answer.finish(jsonrpc.error(request_id, failure), status_of(failure, stateless=True))


def _check_version(request: Request) -> None:
    """Reject a version header that names no revision of the handshake era."""
    version = request.headers.get(b"mcp-protocol-version")
    if version is not None and version not in HANDSHAKE_NAMES:
        known = ", ".join([*HANDSHAKE, *STATELESS])
        raise Rejection(400, f"MCP-Protocol-Version {version.decode('latin-1')!r} is not one of {known}")
