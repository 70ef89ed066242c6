"""Dispatch: a message comes in, messages come out; no I/O.

`METHODS` lists the protocol's methods. `read` finds a request's method and decodes its parameters without
rejecting anything: a request carries its problem, because its era decides which error is reported first.
`client_of` finds the era. The dispatcher runs the method, which returns an encoded result body with its
`_meta`, or a coroutine for one, and puts that into the envelope of the client's revision. A transport calls
`handle_bytes` or `handle_message`. HTTP calls `read` and `handle_request` itself, because it compares a
request with its headers in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from . import jsonrpc
from .batches import BatchRun
from .calls.context import BecameTask, Context, check_level, find_input_requests
from .calls.failures import give_failure
from .calls.params import (
    EMPTY,
    META_PREFIX,
    NULL,
    CallToolParams,
    CancelledParams,
    CompleteParams,
    GetPromptParams,
    InitializeParams,
    ListenParams,
    PageParams,
    Params,
    ReadResourceParams,
    RequestMeta,
    SetLevelParams,
    SubscribeParams,
    TaskParams,
    UpdateTaskParams,
)
from .connection import Client, Connection, Outlet, Reply
from .errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    MalformedRequest,
    ProtocolError,
    forget_frames,
    quote,
)
from .features.argument_errors import reword
from .features.handlers import close_unstarted
from .methods.features import call_tool, complete, get_prompt, read_resource
from .methods.handshake import discover, initialize, ping, set_level
from .methods.listing import list_prompts, list_resources, list_templates, list_tools
from .methods.subscriptions import listen, subscribe, unsubscribe
from .revisions import NEWEST_HANDSHAKE, STATELESS, Revision
from .server import Body, EventualBody, Server

_LARGE_BYTES = 64 * 1024
"""Limit of `initialize` and of `_meta`, which stay in memory as long as the session."""


class Method(Struct, frozen=True):
    """One method: its parameters, its function, and the eras in which it exists."""

    params: type[Params]
    run: Callable[[Any, Context[Any], Any], EventualBody]
    handshake: bool = True
    stateless: bool = True
    needs: Literal[
        "",
        "logging",
        "tools",
        "prompts",
        "has_resources",
        "subscribable",
        "completers",
        "has_tasks",
        "has_skills",
    ] = ""
    """An attribute of the bridge; the method is not offered while it is empty or False."""


def _late(module: str, name: str) -> Callable[[Server, Context[Any], Any], EventualBody]:
    """Return a function that imports a method's module when first called: most servers never need it."""

    def run(server: Server, context: Context[Any], params: Any) -> EventualBody:
        from importlib import import_module

        body: EventualBody = getattr(import_module(module, __package__), name)(server, context, params)
        return body

    return run


METHODS: dict[str, Method] = {
    "initialize": Method(InitializeParams, initialize, stateless=False),
    "server/discover": Method(Params, discover, handshake=False),
    "ping": Method(Params, ping, stateless=False),
    "logging/setLevel": Method(SetLevelParams, set_level, stateless=False, needs="logging"),
    "tools/list": Method(PageParams, list_tools, needs="tools"),
    "tools/call": Method(CallToolParams, call_tool, needs="tools"),
    "resources/list": Method(PageParams, list_resources, needs="has_resources"),
    "resources/templates/list": Method(PageParams, list_templates, needs="has_resources"),
    "resources/read": Method(ReadResourceParams, read_resource, needs="has_resources"),
    "resources/subscribe": Method(SubscribeParams, subscribe, stateless=False, needs="subscribable"),
    "resources/unsubscribe": Method(SubscribeParams, unsubscribe, stateless=False, needs="subscribable"),
    "prompts/list": Method(PageParams, list_prompts, needs="prompts"),
    "prompts/get": Method(GetPromptParams, get_prompt, needs="prompts"),
    "completion/complete": Method(CompleteParams, complete, needs="completers"),
    "subscriptions/listen": Method(ListenParams, listen, handshake=False),
    "tasks/get": Method(TaskParams, _late(".tasks.methods", "get_task"), handshake=False, needs="has_tasks"),
    "tasks/update": Method(
        UpdateTaskParams, _late(".tasks.methods", "update_task"), handshake=False, needs="has_tasks"
    ),
    "tasks/cancel": Method(
        TaskParams, _late(".tasks.methods", "cancel_task"), handshake=False, needs="has_tasks"
    ),
    "skills/list": Method(
        PageParams, _late(".methods.skills", "list_skills"), handshake=False, needs="has_skills"
    ),
    "skills/get": Method(
        SubscribeParams, _late(".methods.skills", "get_skill"), handshake=False, needs="has_skills"
    ),
}


class RpcRequest(Struct):
    """A request: its method, its parameters, and the problem with them."""

    id: jsonrpc.RequestId
    name: str
    method: Method | None
    params: Params
    problem: ProtocolError | None = None


class _Parts(Struct):
    """The members of large parameters, each of which has its own size limit."""

    meta: Raw = field(default=EMPTY, name="_meta")
    arguments: Raw = EMPTY


_decode_parts = msgspec.json.Decoder(_Parts).decode


class _Decoders(dict[type[Params], Callable[[Raw], Params]]):
    """One decoder per type, made on first use: making all of them would delay the first answer."""

    def __missing__(self, kind: type[Params]) -> Callable[[Raw], Params]:
        decode = self[kind] = msgspec.json.Decoder(kind).decode
        return decode


_decoders = _Decoders()


def read(request_id: jsonrpc.RequestId, name: str, message: jsonrpc.Message) -> RpcRequest:
    """Find a request's method and decode its parameters. Never raises: see `RpcRequest.problem`."""
    method = METHODS.get(name)
    raw = EMPTY if isinstance(message.params, UnsetType) else message.params
    if message.__class__ is jsonrpc.UnweighedMessage:
        problem = _measure(name, raw)
        if problem:
            failure = MalformedRequest(INVALID_PARAMS, f"Invalid params for {name}: {problem}")
            return RpcRequest(request_id, name, method, Params(), failure)
    try:
        decoded = _decoders[Params if method is None else method.params](raw)
    except jsonrpc.UNDECODABLE as error:
        if bytes(raw) == NULL:  # some clients write null for parameters that they leave out
            return read(request_id, name, jsonrpc.Message("2.0"))

        problem = f"Invalid params for {name}: {reword(str(error))}"
        try:  # `_meta` alone decides the era, and so the status of the error
            params = _decoders[Params](raw)
        except jsonrpc.UNDECODABLE:
            return RpcRequest(request_id, name, method, Params(), MalformedRequest(INVALID_PARAMS, problem))
        return RpcRequest(request_id, name, method, params, ProtocolError(INVALID_PARAMS, problem))
    return RpcRequest(request_id, name, method, decoded)


def _measure(name: str, raw: Raw) -> str:
    """Return which limit the parameters exceed, or nothing. Arguments are checked by their tool."""
    if len(memoryview(raw)) <= _LARGE_BYTES:
        return ""
    try:
        parts = _decode_parts(raw)
    except jsonrpc.UNDECODABLE:
        return ""  # `read` decodes it again and reports the reason
    if name == "initialize" or len(bytes(parts.meta)) > _LARGE_BYTES:
        subject = "the parameters" if name == "initialize" else "_meta"
        return f"{subject} may have {_LARGE_BYTES} bytes"
    values = bytes(raw).count(b",") - bytes(parts.arguments).count(b",")
    return f"more than {jsonrpc.MAX_VALUES} values" if values > jsonrpc.MAX_VALUES else ""


def client_of(request: RpcRequest, connection: Connection, expected: Revision | None) -> Client:
    """Return the client of a request, which includes its revision.

    `expected` is the revision that the transport knows from outside the message (an HTTP header).
    """
    meta = request.params.meta
    declared = UNSET if meta is None else meta.protocol_version
    if declared is not UNSET or (expected is not None and expected.stateless):
        return _stateless_client(meta)
    if connection.client is not None:
        return connection.client
    if request.name in ("initialize", "ping"):
        return Client(NEWEST_HANDSHAKE, {}, {})
    if request.name == "server/discover":
        return _stateless_client(meta)
    raise MalformedRequest(
        INVALID_REQUEST,
        "Not initialized: send initialize first, or give protocolVersion and clientCapabilities in _meta",
    )


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
    level = None if isinstance(meta.log_level, UnsetType) else check_level(meta.log_level)
    info = {} if isinstance(meta.client_info, UnsetType) else meta.client_info
    return Client(revision, meta.client_capabilities, info, level)


def _missing_meta(name: str) -> MalformedRequest:
    return MalformedRequest(INVALID_PARAMS, f"Invalid params: _meta needs {META_PREFIX}{name}")


class Dispatcher(Server):
    """Handles the messages of any number of connections to one bridge."""

    def handle_bytes(self, data: bytes | memoryview, connection: Connection, outlet: Outlet) -> Reply:
        """Handle one line or HTTP body. Never raises."""
        return self.handle_message(jsonrpc.decode(data), connection, outlet)

    def handle_message(
        self,
        message: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Malformed,
        connection: Connection,
        outlet: Outlet,
    ) -> Reply:
        """Handle what `jsonrpc.decode` returns: a request, a notification, an answer to us. Never raises."""
        if isinstance(message, jsonrpc.Malformed):
            return jsonrpc.error(message.id, message.error)
        if isinstance(message, jsonrpc.Batch):
            return self.handle_batch(message, connection, outlet)
        if message.method is UNSET:
            connection.take_answer(message)
            return None
        if message.id is UNSET:
            self.handle_notification(message, connection)
            return None
        request = read(message.id, message.method, message)
        try:
            return self.handle_request(request, connection, outlet, encode_errors=True)
        except ProtocolError as failure:
            return jsonrpc.error(message.id, failure)

    def handle_notification(self, message: jsonrpc.Message, connection: Connection) -> None:
        """Handle a notification; JSON-RPC forbids an answer even to an unknown or malformed one."""
        if message.method == "notifications/cancelled" and message.params is not UNSET:
            try:
                cancelled = msgspec.json.decode(message.params, type=CancelledParams)
            except jsonrpc.UNDECODABLE:
                return
            connection.cancel(cancelled.request_id)

    def handle_batch(self, batch: jsonrpc.Batch, connection: Connection, outlet: Outlet) -> Reply:
        """Handle an array of messages, which only revision 2025-03-26 has; answer with an array."""

        def refuse(request_id: jsonrpc.RequestId | None, problem: str) -> bytes:
            failure = ProtocolError(INVALID_REQUEST, f"Invalid request: {problem}")
            return jsonrpc.error(request_id, failure)

        def handle(item: jsonrpc.Message | jsonrpc.Malformed) -> Reply:
            # The revision decides whether a batch is allowed at all, so a batch cannot choose the revision.
            if isinstance(item, jsonrpc.Message) and item.method == "initialize" and item.id is not UNSET:
                return refuse(item.id, "initialize cannot be part of a batch")
            return self.handle_message(item, connection, outlet)

        client = connection.client
        if client is None or not client.revision.batches:
            return refuse(None, "batches exist only in protocol revision 2025-03-26")
        if len(batch.items) > self.limits.requests_in_flight:
            return refuse(None, f"a batch may have {self.limits.requests_in_flight} messages")
        if not any(isinstance(item, jsonrpc.Malformed) or jsonrpc.is_request(item) for item in batch.items):
            for item in batch.items:
                handle(item)
            return None

        return BatchRun(batch, connection, outlet).run(handle)

    def handle_request(
        self,
        request: RpcRequest,
        connection: Connection,
        outlet: Outlet,
        expected: Revision | None = None,
        *,
        encode_errors: bool = False,
    ) -> bytes | Coroutine[Any, Any, bytes | None]:
        """Run a request; return its answer, or a coroutine for it. Raises `ProtocolError`.

        `expected` is the revision that the transport knows from outside the message (an HTTP header). The
        coroutine raises `ProtocolError` too, for HTTP, whose status depends on it; with `encode_errors` it
        returns the encoded error instead.
        """
        try:
            client = client_of(request, connection, expected)
        except ProtocolError as failure:
            self._counted(request, failure)
            raise
        method = request.method
        if (
            method is None
            or not (method.stateless if client.revision.stateless else method.handshake)
            or (method.needs and not getattr(self.bridge, method.needs))
        ):
            unknown = ProtocolError(METHOD_NOT_FOUND, f"Method not found: {quote(request.name)}")
            raise self._counted(request, unknown)
        if request.problem is not None:
            raise self._counted(request, request.problem)
        bridge = self.bridge
        if not bridge.logging:
            client.log_level = None  # no log messages without the capability
        context: Context[Any] = Context(
            request.id,
            request.name,
            client,
            connection,
            outlet,
            lifespan=self.lifespans[bridge],
            dialect=bridge.dialect,
            meta=request.params.meta,
        )
        in_flight = connection.in_flight
        if request.id in in_flight:
            message = f"Invalid request: id {request.id!r} is already in flight"
            raise ProtocolError(INVALID_REQUEST, message)
        in_flight[request.id] = context
        # Fast path: a method that does not wait is answered here. With a task for each call, the task was a
        # third of the call's time (`python -m bench`).
        try:
            outcome = method.run(self, context, request.params)
            if not isinstance(outcome, tuple):
                return self._finish(context, request, outcome, encode_errors=encode_errors)
            answer = self._envelope(context, outcome)
        except BaseException as error:  # noqa: BLE001  (a client always gets an answer, whatever a tool raises)
            in_flight.pop(request.id, None)
            return self._answer_failure(context, request, error)
        in_flight.pop(request.id, None)
        return answer

    async def _finish(
        self,
        context: Context[Any],
        request: RpcRequest,
        work: Coroutine[Any, Any, Body],
        *,
        encode_errors: bool,
    ) -> bytes | None:
        """Await a method's result; None if the client cancelled the request, which is then never answered."""
        context.task = asyncio.current_task()
        answer: bytes | None = None
        try:
            # Cancelled between its arrival and the first turn of its task: the handler must not begin.
            if context.cancelled:
                close_unstarted(work)
            else:
                answer = self._envelope(context, await work)
        except BaseException as error:
            if not context.cancelled:
                if context.is_interrupted(error):
                    raise
                try:
                    answer = self._answer_failure(context, request, error)
                except ProtocolError as failure:
                    if not encode_errors:
                        raise
                    answer = jsonrpc.error(request.id, failure)
            forget_frames(error)
        finally:
            context.connection.in_flight.pop(request.id, None)
        return None if context.cancelled else answer

    def _envelope(self, context: Context[Any], body: Body) -> bytes:
        """Put an encoded result into its answer by joining bytes: it is never decoded or encoded again."""
        encoded, meta = body
        if context.revision.stateless:
            head = self.complete_head
            if meta:
                head = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode({**self.info_meta, **meta})
        elif meta:
            head = b'{"_meta":%b' % jsonrpc.encode(meta)
        else:
            return jsonrpc.result(context.request_id, encoded)
        if len(encoded) > jsonrpc.LARGE_BYTES:
            return jsonrpc.large_result(context.request_id, head, b",", memoryview(encoded)[1:])
        tail = b"}" if encoded == b"{}" else b"," + encoded[1:]
        return jsonrpc.result(context.request_id, head + tail)

    def _answer_failure(self, context: Context[Any], request: RpcRequest, error: BaseException) -> bytes:
        """Answer a request whose handler raised: it asks the client, became a task, or failed."""

        def answer(kind: str, members: dict[str, Any]) -> bytes:
            body = {"resultType": kind, "_meta": self.info_meta, **members}
            return jsonrpc.result(context.request_id, jsonrpc.encode(body))

        try:
            if requests := find_input_requests(error):
                try:
                    return answer("input_required", self.multi_round.pause(context, request.params, requests))
                except TypeError as bug:  # the handler's question cannot be encoded as JSON
                    error = bug
            elif isinstance(error, BecameTask):
                return answer("task", error.described)

            return self._envelope(context, give_failure(context, error))
        except ProtocolError as failure:
            self._counted(request, failure)
            forget_frames(failure)
            del error  # the same exception: its new traceback contains this frame
            raise

    def _counted(self, request: RpcRequest, failure: ProtocolError) -> ProtocolError:
        # A client chooses the name of an unknown method, so it must not become a label of a metric.
        if self.on_error is not None:
            self.on_error("(unknown)" if request.method is None else request.name, failure.code)
        return failure
