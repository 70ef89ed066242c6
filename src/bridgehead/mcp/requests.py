"""Requests: what a message asks: its method, its parameters, and the era of its client. No I/O.

`METHODS` lists the protocol's methods. `read` finds a request's method and decodes its parameters without
rejecting anything: a request carries its problem, because its era decides which error is reported first.
`client_of` finds the era.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from . import jsonrpc
from .calls.context import Context, check_level
from .calls.params import (
    EMPTY,
    META_PREFIX,
    NULL,
    CallToolParams,
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
from .connection import Client, Connection
from .errors import INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_VERSION, MalformedRequest, ProtocolError
from .features.results import EventualBody
from .methods.features import call_tool, complete, get_prompt, read_resource
from .methods.handshake import discover, initialize, ping, set_level
from .methods.listing import list_prompts, list_resources, list_templates, list_tools
from .methods.subscriptions import listen, subscribe, unsubscribe
from .revisions import NEWEST_HANDSHAKE, STATELESS, Revision
from .values.argument_errors import reword

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


def _late(module: str, name: str) -> Callable[[Any, Context[Any], Any], EventualBody]:
    """Return a function that imports a method's module when first called: most servers never need it."""

    def run(dispatcher: Any, context: Context[Any], params: Any) -> EventualBody:
        body: EventualBody = getattr(import_module(module, __package__), name)(dispatcher, context, params)
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
    "tasks/get": Method(TaskParams, _late(".methods.tasks", "get_task"), handshake=False, needs="has_tasks"),
    "tasks/update": Method(
        UpdateTaskParams, _late(".methods.tasks", "update_task"), handshake=False, needs="has_tasks"
    ),
    "tasks/cancel": Method(
        TaskParams, _late(".methods.tasks", "cancel_task"), handshake=False, needs="has_tasks"
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
    """The member of large parameters that has a limit of its own."""

    meta: Raw = field(default=EMPTY, name="_meta")


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
    if len(memoryview(raw)) > _LARGE_BYTES and (kept := _kept_too_long(name, raw)):
        failure = f"Invalid params for {name}: {kept} may have {_LARGE_BYTES} bytes"
        return RpcRequest(request_id, name, method, Params(), MalformedRequest(INVALID_PARAMS, failure))
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


def _kept_too_long(name: str, raw: Raw) -> str:
    """Return which part of large parameters stays in memory and is too long for that, or nothing."""
    if name == "initialize":
        return "the parameters"
    try:
        return "_meta" if len(memoryview(_decode_parts(raw).meta)) > _LARGE_BYTES else ""
    except jsonrpc.UNDECODABLE:
        return ""  # `read` decodes it again and reports the reason


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
    if request.name == "server/discover" or meta is not None:
        return _stateless_client(meta)  # which says what is missing
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
