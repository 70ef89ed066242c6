"""Dispatch: the core. A message comes in, messages come out; no I/O.

The dispatcher decides which era a request belongs to, finds its method, runs it, and puts the result into the
envelope of the client's revision. Transports call `receive` (or, where they need to look in between, `read`
and `serve`) and move the bytes that come back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from . import changes, jsonrpc
from .bridge import Bridge
from .changes import Listener
from .connection import Client, Connection, Outlet
from .context import Context, InputRequired
from .errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Failure,
    MalformedRequest,
    ProtocolError,
    ToolError,
)
from .lifespan import Lifespan
from .limits import Limits
from .methods import METHODS, Body, Method, checked_level, fitted_info
from .params import EMPTY, META_PREFIX, NULL, AnswerableParams, CancelledParams, Params, RequestMeta
from .tools import encoded, error_result
from .versions import NEWEST_HANDSHAKE, STATELESS, V2026_07_28, Revision

log = logging.getLogger("bridgehead.mcp")

Reply = bytes | Coroutine[Any, Any, bytes | None] | None
"""An answer, work that will give one (or none, if it is cancelled), or nothing to say."""


class Request(Struct):
    """A request as read: its method, its parameters, or what is wrong with them."""

    id: jsonrpc.RequestId
    name: str
    method: Method | None
    params: Params
    problem: ProtocolError | None = None


class Dispatcher:
    """Serves one bridge to any number of connections."""

    def __init__(
        self, bridge: Bridge[Any], *, limits: Limits | None = None, state_key: bytes | None = None
    ) -> None:
        self.bridge = bridge
        self.limits = limits or Limits()
        self.lifespan = Lifespan(bridge.lifespan)
        self.streams: set[Listener] = set()
        """The open `subscriptions/listen` streams."""
        self._state_key = state_key
        self._seal: Any = None
        self._decoders: dict[str, Callable[[Raw], Params]] = {}
        self._memory: dict[Any, Body] = {}
        self._memory_generation = 0
        self._server_meta = {META_PREFIX + "serverInfo": fitted_info(self, V2026_07_28)}
        self._complete = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode(self._server_meta)

    # --- in ------------------------------------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, connection: Connection, outlet: Outlet) -> Reply:
        """Take one line or body and return what is to be sent back. Never raises."""
        return self.take_any(jsonrpc.decode(data), connection, outlet)

    def take_any(
        self,
        message: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Malformed,
        connection: Connection,
        outlet: Outlet,
    ) -> Reply:
        """Take whatever was decoded."""
        if isinstance(message, jsonrpc.Message):
            return self.take(message, connection, outlet)
        if isinstance(message, jsonrpc.Malformed):
            return jsonrpc.error(message.id, message.error)
        return self.take_batch(message, connection, outlet)

    def take(self, message: jsonrpc.Message, connection: Connection, outlet: Outlet) -> Reply:
        """Take one message."""
        if message.method is UNSET:
            connection.answered(message)
            return None
        if message.id is UNSET:
            self.notified(message, connection)
            return None
        try:
            request = self.read(message)
            work = self.serve(request, connection, outlet)
        except ProtocolError as failure:
            return jsonrpc.error(message.id, failure)
        return work if isinstance(work, bytes) else self._answering(message.id, work)

    async def _answering(
        self, request_id: jsonrpc.RequestId, work: Coroutine[Any, Any, bytes | None]
    ) -> bytes | None:
        try:
            return await work
        except ProtocolError as failure:
            return jsonrpc.error(request_id, failure)

    def take_batch(self, batch: jsonrpc.Batch, connection: Connection, outlet: Outlet) -> Reply:
        """Take a batch, which only one revision knows; its answers come back as one array."""
        client = connection.client
        if client is None or not client.revision.batches:
            message = "Invalid request: batches exist only in protocol revision 2025-03-26"
            return jsonrpc.error(None, ProtocolError(INVALID_REQUEST, message))
        if len(batch.items) > self.limits.requests_in_flight:
            message = f"Invalid request: a batch may have {self.limits.requests_in_flight} messages"
            return jsonrpc.error(None, ProtocolError(INVALID_REQUEST, message))
        replies = [self._take_item(item, connection, outlet) for item in batch.items]
        if all(reply is None for reply in replies):
            return None
        return self._collected(replies)

    def _take_item(
        self, item: jsonrpc.Message | jsonrpc.Malformed, connection: Connection, outlet: Outlet
    ) -> Reply:
        if isinstance(item, jsonrpc.Malformed):
            return jsonrpc.error(item.id, item.error)
        if item.method == "initialize" and item.id is not UNSET:
            failure = ProtocolError(INVALID_REQUEST, "Invalid request: initialize cannot be part of a batch")
            return jsonrpc.error(item.id, failure)
        return self.take(item, connection, outlet)

    async def _collected(self, replies: list[Reply]) -> bytes | None:
        running = [
            reply if reply is None or isinstance(reply, bytes) else asyncio.ensure_future(reply)
            for reply in replies
        ]
        answers = [await item if isinstance(item, asyncio.Future) else item for item in running]
        given = [answer for answer in answers if answer is not None]
        return b"[%b]" % b",".join(given) if given else None

    def notified(self, message: jsonrpc.Message, connection: Connection) -> None:
        """Take a notification; one that is unknown or broken is ignored, as the protocol asks."""
        if message.method == "notifications/cancelled" and message.params is not UNSET:
            try:
                cancelled = msgspec.json.decode(message.params, type=CancelledParams)
            except jsonrpc.UNDECODABLE:
                return
            connection.cancel(cancelled.request_id)

    # --- requests ------------------------------------------------------------------------------------------

    def read(self, message: jsonrpc.Message) -> Request:
        """Find a request's method and decode its parameters, without judging either yet."""
        name: str = message.method  # type: ignore[assignment]
        method = METHODS.get(name)
        raw = EMPTY if message.params is UNSET else message.params
        try:
            params = self._decoder(name, method)(raw)
        except jsonrpc.UNDECODABLE as error:
            return self._read_broken(message, name, method, raw, error)
        return Request(message.id, name, method, params)  # type: ignore[arg-type]

    def _read_broken(
        self, message: jsonrpc.Message, name: str, method: Method | None, raw: Raw, error: Exception
    ) -> Request:
        if bytes(raw) == NULL:
            return self.read(jsonrpc.Message("2.0", message.id, name))
        problem: ProtocolError = ProtocolError(INVALID_PARAMS, f"Invalid params for {name}: {error}")
        try:
            params = msgspec.json.decode(raw, type=Params)
        except jsonrpc.UNDECODABLE:
            params, problem = Params(), MalformedRequest(INVALID_PARAMS, problem.message)
        return Request(message.id, name, method, params, problem)  # type: ignore[arg-type]

    def _decoder(self, name: str, method: Method | None) -> Callable[[Raw], Params]:
        if method is None:
            name, kind = "", Params
        else:
            kind = method.params
        decoder = self._decoders.get(name)
        if decoder is None:
            decoder = self._decoders[name] = msgspec.json.Decoder(kind).decode
        return decoder

    def serve(
        self,
        request: Request,
        connection: Connection,
        outlet: Outlet,
        expected: Revision | None = None,
    ) -> bytes | Coroutine[Any, Any, bytes | None]:
        """Run a request. Returns its answer or the work towards it; raises `ProtocolError`.

        `expected` is the revision that the transport was told beside the message, where it was.
        """
        client = self._client_of(request, connection, expected)
        method = request.method
        if (
            method is None
            or not (method.stateless if client.revision.stateless else method.handshake)
            or not method.offered(self)
        ):
            raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {request.name}")
        if request.problem is not None:
            raise request.problem
        context: Context[Any] = Context(
            request.id,
            request.name,
            client,
            connection,
            outlet,
            lifespan=self.lifespan,
            meta=request.params.meta,
        )
        connection.enter(context)
        try:
            outcome = method.run(self, context, request.params)
            if not isinstance(outcome, tuple):
                return self._finishing(context, request, outcome)
            answer = self._enveloped(context, outcome)
        except (Exception, InputRequired) as error:  # noqa: BLE001  (a client always gets an answer)
            connection.leave(context)
            return self._unwound(context, request, error)
        connection.leave(context)
        return answer

    async def _finishing(
        self, context: Context[Any], request: Request, work: Coroutine[Any, Any, Body]
    ) -> bytes | None:
        context.task = asyncio.current_task()
        answer: bytes | None = None
        try:
            if context.cancelled:
                work.close()
            else:
                answer = self._enveloped(context, await work)
        except (Exception, InputRequired) as error:  # noqa: BLE001  (the same)
            if not context.cancelled:
                answer = self._unwound(context, request, error)
        except asyncio.CancelledError:
            if not context.cancelled:
                raise
        finally:
            context.connection.leave(context)
        return None if context.cancelled else answer

    # --- eras ----------------------------------------------------------------------------------------------

    def _client_of(self, request: Request, connection: Connection, expected: Revision | None) -> Client:
        meta = request.params.meta
        declared = UNSET if meta is None else meta.protocol_version
        if declared is not UNSET or (expected is not None and expected.stateless):
            return self._stateless_client(meta)
        if connection.client is not None:
            return connection.client
        if request.name in ("initialize", "ping"):
            return Client(NEWEST_HANDSHAKE, {}, {})
        if request.name == "server/discover":
            return self._stateless_client(meta)
        raise MalformedRequest(
            INVALID_REQUEST,
            "Not initialized: send initialize first, or give protocolVersion and clientCapabilities in _meta",
        )

    @staticmethod
    def _stateless_client(meta: RequestMeta | None) -> Client:
        meta = meta or RequestMeta()
        if isinstance(meta.protocol_version, UnsetType):
            raise _missing_meta("protocolVersion")
        if isinstance(meta.client_capabilities, UnsetType):
            raise _missing_meta("clientCapabilities")
        revision = STATELESS.get(meta.protocol_version)
        if revision is None:
            raise ProtocolError(
                UNSUPPORTED_VERSION,
                "Unsupported protocol version",
                {"supported": list(STATELESS), "requested": meta.protocol_version},
            )
        level = None if meta.log_level is UNSET else checked_level(meta.log_level)
        info = {} if isinstance(meta.client_info, UnsetType) else meta.client_info
        return Client(revision, meta.client_capabilities, info, level)

    def adopt(self, connection: Connection, client: Client) -> None:
        """Make a client of the handshake era known on its connection, and let it hear of changes."""
        connection.client = client
        if connection.listener is None:
            names = {"tools": changes.TOOLS, "prompts": changes.PROMPTS, "resources": changes.RESOURCES}
            connection.listener = Listener({names[what] for what in self.bridge.changing}, set())
            self.bridge.changed.listen(connection.listener)

    @staticmethod
    async def announce(listener: Listener, outlet: Outlet) -> None:
        """Tell a client of the handshake era what changes, for as long as its connection lasts."""
        while heard := await listener.heard():
            for method, uri in heard:
                await outlet.send(jsonrpc.notification(method, None if uri is None else {"uri": uri}))

    @contextmanager
    def streaming(self, connection: Connection, listener: Listener) -> Iterator[None]:
        """Count an open listen stream, and let its listener hear of changes while it is open."""
        self.streams.add(listener)
        self.bridge.changed.listen(listener)
        try:
            with connection.parking():
                yield
        finally:
            self.bridge.changed.leave(listener)
            self.streams.discard(listener)

    def disconnect(self, connection: Connection) -> None:
        """Stop everything that was done for a client that is gone."""
        if connection.listener is not None:
            self.bridge.changed.leave(connection.listener)
            connection.listener.close()
        connection.abandon_questions()
        connection.cancel_all()

    def end_streams(self) -> None:
        """End every listen stream in good order, because the server is going."""
        for listener in tuple(self.streams):
            listener.close()

    # --- out -----------------------------------------------------------------------------------------------

    def remembered(self, key: Any, make: Callable[[], Body]) -> Body:
        """Return what was made before under this key, unless the bridge's lists have changed since."""
        generation = self.bridge.changed.generation
        if self._memory_generation != generation:
            self._memory.clear()
            self._memory_generation = generation
        body = self._memory.get(key)
        if body is None:
            body = self._memory[key] = make()
        return body

    def _enveloped(self, context: Context[Any], body: Body) -> bytes:
        encoded_body, meta = body
        if context.revision.stateless and context.method != "initialize":
            head = self._complete
            if meta:
                head = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode({**self._server_meta, **meta})
        elif meta:
            head = b'{"_meta":%b' % jsonrpc.encode(meta)
        else:
            return jsonrpc.result(context.request_id, encoded_body)
        tail = b"}" if encoded_body == b"{}" else b"," + encoded_body[1:]
        return jsonrpc.result(context.request_id, head + tail)

    def _unwound(self, context: Context[Any], request: Request, error: Exception | InputRequired) -> bytes:
        """Answer for a handler that did not return: it asks the client something, or it failed."""
        try:
            if isinstance(error, InputRequired):
                return self._asking(context, request, error)
            return self._failed(context, self.bridge.dialect.translate(error), error)
        except ProtocolError:
            raise
        except Exception as another:  # noqa: BLE001  (what was to be said cannot be said)
            return self._failed(context, None, another)

    def _failed(self, context: Context[Any], failure: Failure | None, cause: Exception) -> bytes:
        """Word a failure as the bridge's dialect has it; a bug (no failure) leaves only its reference."""
        if failure is None:
            failure = self.bridge.dialect.bug(_logged(context, cause))
        if isinstance(failure, ToolError) and context.method == "tools/call":
            return self._enveloped(context, encoded(error_result(failure), context.revision))
        if isinstance(failure, ToolError):
            failure = ProtocolError(INTERNAL_ERROR, failure.message)
        raise failure from cause

    # --- questions in the stateless era --------------------------------------------------------------------

    def bring_answers(
        self, context: Context[Any], params: AnswerableParams, subject: str, arguments: Raw = EMPTY
    ) -> None:
        """Give a retried request the answers that came with it."""
        if not context.revision.stateless or (
            params.input_responses is UNSET and params.request_state is UNSET
        ):
            return
        answers: dict[str, Any] = {}
        if params.request_state is not UNSET:
            request = _fingerprint(context.method, subject, arguments)
            answers = self._sealer().open(params.request_state, request, context.principal)
        if params.input_responses is not UNSET:
            answers |= params.input_responses
        context.bring(answers)

    def _asking(self, context: Context[Any], request: Request, unanswered: InputRequired) -> bytes:
        params: Any = request.params
        subject = getattr(params, "uri", None) or params.name
        fingerprint = _fingerprint(context.method, subject, getattr(params, "arguments", EMPTY))
        state = self._sealer().close(
            context.used_answers, fingerprint, context.principal, self.limits.request_state_seconds
        )
        body = {
            "resultType": "input_required",
            "_meta": self._server_meta,
            "inputRequests": {
                key: {"method": question.method, "params": question.params_in(context.revision)}
                for key, question in unanswered.questions.items()
            },
            "requestState": state,
        }
        return jsonrpc.result(context.request_id, jsonrpc.encode(body))

    def _sealer(self) -> Any:
        if self._seal is None:
            from .seal import Seal  # hashing is not needed for a handshake

            self._seal = Seal(self._state_key)
        return self._seal


def _missing_meta(what: str) -> MalformedRequest:
    return MalformedRequest(INVALID_PARAMS, f"Invalid params: _meta needs {META_PREFIX}{what}")


def _fingerprint(method: str, subject: str, arguments: Raw) -> bytes:
    from .seal import fingerprint  # hashing is not needed for a handshake

    return fingerprint(method, subject, arguments)


def _logged(context: Context[Any], error: Exception) -> str:
    import secrets  # only a bug needs it

    reference = secrets.token_hex(4)
    log.error("bug %s in %s (request %r)", reference, context.method, context.request_id, exc_info=error)
    return reference
