"""Endpoint: Streamable HTTP at one URL, for clients of both eras at once; and the application around it.

A POST carries one message; its headers and body determine its era. GET (messages that belong to no request,
and resuming a stream) and DELETE (ending a session) exist only in the handshake era.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from .. import jsonrpc
from ..bridge import Bridge
from ..calls.caller import Caller
from ..calls.multi_round import Keys
from ..calls.params import CallToolParams, GetPromptParams, ReadResourceParams, TaskParams
from ..connection import Connection, NullOutlet, overload
from ..coroutines import settle
from ..dispatch import AnyMessage, Dispatcher
from ..errors import HEADER_MISMATCH, ProtocolError
from ..features.tools import TASKS_EXTENSION, Tool
from ..jsonrpc import UNDECODABLE
from ..limits import Limits
from ..requests import RpcRequest, read
from ..revisions import HANDSHAKE, STATELESS, V2026_07_28
from ..shape import Shape
from ..threads import Measured
from . import authentication
from .accounts import Accounts, Share
from .answer import PostAnswer
from .authentication import Authenticate, Headers, Tokens
from .events import HEADERS, KEEP_ALIVE, EventStream
from .guard import LOOPBACK, Guard, accepted, check_json, check_length, is_work, read_body, whole_body
from .legacy_sse import LegacyTransport
from .message import NO_CONTENT, AnyResponse, Handler, HeaderPairs, Request, Response, ResponseStream
from .rejection import Rejection, reject_busy, reject_method, status_of
from .sessions import Session, Sessions

STATELESS_NAMES = {name.encode() for name in STATELESS}
HANDSHAKE_NAMES = {name.encode() for name in HANDSHAKE}
ACCEPTED = Response(202)
_SMALL_BODY = 2 * 1024
"""Bodies up to this size are not charged: counting them would cost every call."""
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")
_SENTINEL, _END = "=?base64?", "?="


class Endpoint:
    """Serves one dispatcher at one URL."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        guard: Guard,
        accounts: Accounts,
        *,
        retry_ms: int = 1000,
        session_prefix: str = "",
    ) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._guard = guard
        self._retry_ms = retry_ms
        self._accounts = accounts
        self.sessions = Sessions(
            self._limits, accounts, lambda session: dispatcher.disconnect(session.connection), session_prefix
        )

    async def __call__(self, request: Request) -> AnyResponse:
        """Serve one request. Raises Rejection."""
        self._guard.check(request.headers)
        if request.method == "GET":
            return await self._get(request)
        if request.method == "DELETE":
            if request.headers.get(b"mcp-protocol-version") in STATELESS_NAMES:
                raise reject_method("There are no sessions in this revision", b"POST")
            self.sessions.close(self.sessions.find(request))
            return Response(NO_CONTENT)
        if request.method != "POST":
            raise reject_method(f"{request.method} is not used here", b"GET, POST, DELETE")
        check_json(request.headers)
        accounts, caller = self._accounts, request.caller
        if accounts.requests.by_caller:
            most = self._limits.http_requests_in_flight
            if accounts.requests.total >= most and accounts.requests.has_part(caller, most):
                raise reject_busy()
            accounts.requests.check(caller)
        if accounts.bytes.by_caller or accounts.is_full:
            accounts.check(caller)
        if request.is_complete:
            body = whole_body(request, self._limits)
            if len(body) <= _SMALL_BODY:
                return await self._handle_message(request, jsonrpc.decode(body))
            shape = Shape()
            is_allowed = shape.add(body)
        else:
            check_length(request.headers, self._limits)
            accounts.requests.take(caller)
            try:
                body, shape = await read_body(request, self._limits, accounts)
            finally:
                accounts.requests.give_back(caller)
            request.body = body  # the access log looks for the trace context in it
            is_allowed = True
        # What will be built is charged before it is, and until the request is answered.
        memory = len(body) + shape.memory
        accounts.check(caller, memory)
        with accounts.holding(caller, memory):
            message = jsonrpc.decode_counted(body) if is_allowed else jsonrpc.decode(body)
            return await self._handle_message(request, message)

    def end_streams(self) -> None:
        """End the streams that would never end by themselves, because the server is stopping."""
        self._dispatcher.end_streams()
        self.sessions.end_general_streams()

    def close(self) -> None:
        """End every session and everything done for it."""
        self.sessions.close_all()

    # --- GET -----------------------------------------------------------------------------------------------

    async def _get(self, request: Request) -> AnyResponse:
        """Deliver the general stream, or resume the stream of the event that Last-Event-ID names."""
        if request.headers.get(b"mcp-protocol-version") in STATELESS_NAMES:
            raise reject_method("There is no GET stream in this revision; use subscriptions/listen", b"POST")
        if not accepted(request.headers.get(b"accept")).events:
            raise Rejection(406, "Accept must list text/event-stream")
        _check_version(request)
        # Some clients probe for a stream before anything else; 405 is how the protocol says "none here".
        if b"mcp-session-id" not in request.headers:
            raise reject_method("There is no stream without a session: send initialize first", b"POST")
        session = self.sessions.find(request)
        self._accounts.streams.check(session.caller)
        last_event_id = request.headers.get(b"last-event-id")
        if last_event_id is None:
            return await self._deliver(request, session, session.general, session.general.last_number)
        return await self._deliver(request, session, *session.position(last_event_id.decode("latin-1")))

    async def _deliver(
        self, request: Request, session: Session, stream: EventStream, position: int
    ) -> ResponseStream:
        """Deliver a stream until it ends, the client hangs up, or a newer GET takes it over."""
        session.in_use += 1
        self._accounts.streams.take(session.caller)
        announcer: asyncio.Task[None] | None = None
        listener = session.connection.listener
        if stream is session.general and listener is not None:
            if session.announcer is not None:  # two announcers would each get only some of the changes
                session.announcer.cancel()
            announcing = self._dispatcher.announce(listener, _StreamOutlet(stream))
            session.announcer = announcer = asyncio.get_running_loop().create_task(announcing)
        stream.reader = reader = object()
        try:
            response = await request.open_stream(200, HEADERS)
            request.when_gone(stream.wake)
            while not request.is_gone and stream.reader is reader:
                for number, data in stream.events_after(position):
                    await response.write(data)
                    position = number
                if stream.has_ended:
                    break
                if not await stream.wait_for_more(self._limits.keep_alive_seconds):
                    await response.write(KEEP_ALIVE)
            if stream.reader is reader:
                stream.reader = None
            return response
        finally:
            if announcer is not None:
                announcer.cancel()
                if session.announcer is announcer:
                    session.announcer = None
            self._accounts.streams.give_back(session.caller)
            session.release()

    # --- POST ----------------------------------------------------------------------------------------------

    async def _handle_message(self, request: Request, message: AnyMessage) -> AnyResponse:
        if self._accounts.work.over and is_work(message):  # empty unless somebody works much
            self._accounts.work.check(request.caller)
        if isinstance(message, jsonrpc.Batch):
            return await self._handle_batch(request, message)
        if isinstance(message, jsonrpc.Malformed):
            return Response.json(jsonrpc.error(message.id, message.error), 400)
        version = request.headers.get(b"mcp-protocol-version")
        if version in STATELESS_NAMES or _is_stateless(version, message):
            return await self._handle_stateless(request, message)
        return await self._handle_in_session(request, message)

    async def _handle_batch(self, request: Request, batch: jsonrpc.Batch) -> AnyResponse:
        """Handle an array of messages: the client must have been through the handshake of 2025-03-26."""
        if request.headers.get(b"mcp-session-id") is None:
            raise Rejection(400, "Batches exist only in protocol revision 2025-03-26, within a session")
        session = self.sessions.find(request)
        connection = session.connection
        if connection.is_busy:
            raise reject_busy()
        self._accounts.check(session.caller, self._limits.batch_bytes)
        try:
            self._dispatcher.check_batch(batch, connection)
        except ProtocolError as failure:
            return Response.json(jsonrpc.error(None, failure), 400)
        answer = self._answer(request, session)
        # Reserve the maximum, since the answers arrive one by one.
        with self._accounts.holding(session.caller, self._limits.batch_bytes):
            work = self._dispatcher.answer_batch(batch, connection, answer)
            return await self._respond(request, answer, work, self._accounts.requests, None, session)

    async def _handle_stateless(self, request: Request, message: jsonrpc.Message) -> AnyResponse:
        if message.method is UNSET:
            raise Rejection(
                400, "A response cannot be posted: there are no requests from this server to answer"
            )
        if message.id is UNSET:
            return ACCEPTED
        share = self._accounts.requests
        if message.method == "subscriptions/listen":
            share = self._accounts.streams
            share.check(request.caller)
        connection = Connection(self._limits, request.principal, request.caller)
        answer = PostAnswer(request, connection)
        rpc_request = read(message.id, message.method, message)

        async def run() -> bytes | None:
            check_mirrored(rpc_request, request.headers, self._dispatcher.bridge)
            return await self._dispatcher.answer_request(rpc_request, connection, answer, V2026_07_28)

        return await self._respond(request, answer, run(), share, rpc_request, None)

    async def _handle_in_session(self, request: Request, message: jsonrpc.Message) -> AnyResponse:
        _check_version(request)
        headers: HeaderPairs = ()
        if message.method == "initialize" and message.id is not UNSET:
            session = self.sessions.open(request)
            headers = ((b"mcp-session-id", session.id.encode()),)
        else:
            session = self.sessions.find(request)
        connection = session.connection
        if message.method is UNSET or message.id is UNSET:
            await self._dispatcher.answer_message(message, connection, NullOutlet())
            return ACCEPTED
        rpc_request = read(message.id, message.method, message)
        answer = self._answer(request, session, headers)
        if connection.is_busy:
            return await self._fail(answer, rpc_request, overload(), session)
        work = self._dispatcher.answer_request(rpc_request, connection, answer)
        return await self._respond(request, answer, work, self._accounts.requests, rpc_request, session)

    def _answer(self, request: Request, session: Session, headers: HeaderPairs = ()) -> PostAnswer:
        return PostAnswer(
            request,
            session.connection,
            headers=headers,
            open_resumable=session.open_stream,
            retry_ms=self._retry_ms,
        )

    async def _respond(
        self,
        request: Request,
        answer: PostAnswer,
        work: Coroutine[Any, Any, bytes | None],
        share: Share,
        rpc_request: RpcRequest | None,
        session: Session | None,
    ) -> AnyResponse:
        """Await the work and respond with its answer or failure; `rpc_request` is None for a batch."""
        # Without authentication a session may be used from several addresses; its opener is the caller.
        caller = request.caller if session is None else session.caller
        share.take(caller)
        if session is not None:
            session.in_use += 1
        request.when_gone(answer.on_client_gone)
        try:
            spend = partial(self._accounts.spend, caller)
            return await answer.finish(await Measured(work, spend))
        except ProtocolError as failure:
            if rpc_request is None:
                raise
            return await self._fail(answer, rpc_request, failure, session)
        finally:
            answer.stop()
            share.give_back(caller)
            if session is not None:
                session.release()

    async def _fail(
        self, answer: PostAnswer, rpc_request: RpcRequest, failure: ProtocolError, session: Session | None
    ) -> AnyResponse:
        """Answer a request with an error; a session whose `initialize` failed is closed again."""
        body, status = jsonrpc.error(rpc_request.id, failure), status_of(failure, stateless=session is None)
        if session is not None and rpc_request.name == "initialize":
            self.sessions.close(session)
            return Response.json(body, status)
        return await answer.finish(body, status)


class _StreamOutlet:
    """Appends messages to an event stream, which a GET delivers."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def send(self, message: bytes) -> None:
        self._stream.append(message)

    async def close_stream(self) -> None:
        """Do nothing: the stream outlives its connections."""


def _is_stateless(version: bytes | None, message: jsonrpc.Message) -> bool:
    """Whether a message without a stateless version header belongs to the stateless era."""
    if message.id is UNSET or message.method is UNSET:
        return False
    # A request with an unknown version is answered by the stateless era, whose errors have a code for that.
    if version is not None and version not in HANDSHAKE_NAMES:
        return True
    # Without a header the body decides. Searching it first spares most messages the decoding of `_meta`.
    if message.params is UNSET or b"io.modelcontextprotocol/protocolVersion" not in bytes(message.params):
        return False
    meta = read(message.id, message.method, message).params.meta
    return meta is not None and meta.protocol_version is not UNSET


def _check_version(request: Request) -> None:
    """Reject a version header that names no revision of the handshake era."""
    version = request.headers.get(b"mcp-protocol-version")
    if version is not None and version not in HANDSHAKE_NAMES:
        known = ", ".join([*HANDSHAKE, *STATELESS])
        raise Rejection(400, f"MCP-Protocol-Version {version.decode('latin-1')!r} is not one of {known}")


# --- the application ------------------------------------------------------------------------------------


Page = Callable[[], Response]
"""Answers a GET at a path beside those of the protocol."""


async def _answer_page(guard: Guard, page: Page, request: Request) -> Response:
    guard.check(request.headers)
    if request.method not in ("GET", "HEAD"):
        raise reject_method(request.method, b"GET")
    return page()


class Application:
    """Streamable HTTP at `/mcp`, and the older HTTP+SSE transport at `/sse` and `/messages`."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        guard: Guard,
        *,
        prefix: str = "",
        retry_ms: int = 1000,
        session_prefix: str = "",
        accounts: Accounts | None = None,
        authenticate: Authenticate | None = None,
        pages: Mapping[str, Page] | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self._authenticate = authenticate
        self.accounts = accounts or Accounts(dispatcher.limits)
        dispatcher.ledger = self.accounts
        self.endpoint = Endpoint(
            dispatcher, guard, self.accounts, retry_ms=retry_ms, session_prefix=session_prefix
        )
        self._legacy = LegacyTransport(dispatcher, guard, self.accounts, f"{prefix}/messages", session_prefix)
        self._routes: dict[str, Handler] = {
            f"{prefix}/mcp": self.endpoint,
            f"{prefix}/sse": self._legacy.open,
            f"{prefix}/messages": self._legacy.post,
            **{path: partial(_answer_page, guard, page) for path, page in (pages or {}).items()},
        }

    async def __call__(self, request: Request) -> AnyResponse:
        """Answer one request, if its caller is allowed."""
        if self._authenticate is not None:
            # Before anything else: an unknown caller learns nothing, not even which paths exist.
            try:
                async with asyncio.timeout(authentication.WAIT_SECONDS):
                    principal = await settle(self._authenticate(Headers(request.headers)))
            except TimeoutError:
                return authentication.reject_late().response
            if isinstance(principal, Caller):
                request.identity, principal = principal, principal.name
            request.principal = authentication.checked(principal)
            if request.principal is None:
                return authentication.reject_caller(request).response
        return await self.route(request)

    @property
    def needs_authentication(self) -> bool:
        """Whether only known callers may call."""
        return self._authenticate is not None

    async def route(self, request: Request) -> AnyResponse:
        """Answer a request whose caller is authenticated, or need not be."""
        route = self._routes.get(request.path)
        if route is None:
            return Rejection(404, f"There is nothing at {request.path}").response
        try:
            return await route(request)
        except Rejection as rejection:
            return rejection.response

    async def start(self) -> None:
        """Start the bridge's lifespan without waiting for it."""
        self.dispatcher.start()

    def end_streams(self) -> None:
        """End open streams, because the server is stopping; calls are still answered."""
        self.endpoint.end_streams()
        self._legacy.end_streams()

    async def stop(self) -> None:
        """End every session and the bridge's lifespan."""
        self.endpoint.close()
        await self.dispatcher.stop()


def application(
    bridge: Bridge[Any],
    *,
    limits: Limits | None = None,
    allowed_hosts: Iterable[str] = LOOPBACK,
    allowed_origins: Iterable[str] = (),
    state_key: Keys | None = None,
    retry_ms: int = 1000,
    tokens: Tokens | None = None,
    authenticate: Authenticate | None = None,
    pages: Mapping[str, Page] | None = None,
) -> Application:
    """Make the application of a bridge; by default only loopback names are accepted as Host and Origin.

    `pages` answer GET at paths of their own, such as `/healthz`.

    With `tokens` (secrets, or a mapping from secrets to the names of callers) or `authenticate` (a function
    from the headers to the caller's name or None, plain or async) everybody else is refused with 401.
    """
    if tokens is not None and authenticate is not None:
        raise ValueError("application takes either tokens or authenticate, not both")
    if tokens is not None:
        authenticate = authentication.accept_tokens(tokens)
    return Application(
        Dispatcher(bridge, limits=limits, state_key=state_key),
        Guard(allowed_hosts, allowed_origins),
        retry_ms=retry_ms,
        authenticate=authenticate,
        pages=pages,
    )


# --- mirrored headers -----------------------------------------------------------------------------------
# In the stateless era, headers repeat parts of the body. Intermediaries route by them, so a request whose
# headers and body differ is refused with HeaderMismatch before any of it runs.


def check_mirrored(request: RpcRequest, headers: dict[bytes, bytes], bridge: Bridge[Any]) -> None:
    """Raise HeaderMismatch unless every mirrored header equals its part of the body."""
    params = request.params
    declared = UNSET if params.meta is None else params.meta.protocol_version
    if not isinstance(declared, UnsetType):  # a missing version in the body has its own, clearer error
        _compare("MCP-Protocol-Version", headers.get(b"mcp-protocol-version"), declared, is_plain=True)
    _compare("Mcp-Method", headers.get(b"mcp-method"), request.name, is_plain=True)
    if isinstance(params, CallToolParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.name)
        tool = bridge.tools.get(params.name)
        if tool is not None and tool.headers:
            _check_arguments(tool, params, headers)
    elif isinstance(params, GetPromptParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.name)
    elif isinstance(params, ReadResourceParams):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params.uri)
    elif isinstance(params, TaskParams) and bridge.has_tasks:
        # A client without the extension gets the error about that instead, which the method raises.
        capabilities = UNSET if params.meta is None else params.meta.client_capabilities
        extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
        if isinstance(extensions, dict) and TASKS_EXTENSION in extensions:
            _compare("Mcp-Name", headers.get(b"mcp-name"), params.task_id)


def _check_arguments(tool: Tool, params: CallToolParams, headers: dict[bytes, bytes]) -> None:
    """Compare the headers that mirror arguments of the tool (`x-mcp-header` in its schema)."""
    try:
        arguments = msgspec.json.decode(params.arguments)
    except UNDECODABLE:
        return  # the tool's own check says what is wrong
    for name, path in tool.headers.items():
        value = arguments
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        header = headers.get(name.encode())
        if value is None:
            if header is not None:
                raise _mismatch(f"{name} is set, but the arguments have no such value")
        elif isinstance(value, bool):
            _compare(name, header, "true" if value else "false")
        elif isinstance(value, int):
            # Compared as numbers, since a client may write 1 as 1.0.
            if header is None:
                raise _mismatch(f"{name} is missing")
            text = _decode(name, header)
            if _NUMBER.fullmatch(text) is None or float(text) != value:
                raise _mismatch(f"{name} header value {text!r} does not match body value {value}")
        else:
            _compare(name, header, str(value))


def _compare(name: str, header: bytes | None, expected: str, *, is_plain: bool = False) -> None:
    """Compare a header, which may be base64 in `=?base64?…?=` unless it `is_plain`."""
    if header is None:
        raise _mismatch(f"{name} is missing")
    # Fast path: equal bytes that need no decoding.
    if header == expected.encode() and header.isascii() and not header.startswith(b"=?"):
        return
    text = header.decode("latin-1") if is_plain else _decode(name, header)
    if text != expected:
        raise _mismatch(f"{name} header value {text!r} does not match body value {expected!r}")


def _decode(name: str, header: bytes) -> str:
    text = header.strip().decode("latin-1")
    if text.startswith(_SENTINEL) and text.endswith(_END):
        try:
            return base64.b64decode(text[len(_SENTINEL) : -len(_END)], validate=True).decode()
        except (binascii.Error, ValueError):
            raise _mismatch(f"{name} is not valid base64") from None
    if not text.replace("\t", " ").isprintable() or not text.isascii():
        raise _mismatch(f"{name} contains invalid characters")
    return text


def _mismatch(detail: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, f"Header mismatch: {detail}")
