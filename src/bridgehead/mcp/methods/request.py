"""Request: one request as it was read, and who makes it.

Reading does not judge: what is wrong with a request is kept in it, because the era that it belongs to decides
which mistake is told first. `client_of` tells the era.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from .. import jsonrpc
from ..calls.context import check_level
from ..calls.params import EMPTY, META_PREFIX, NULL, Params, RequestMeta
from ..connection import Client, Connection
from ..errors import INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_VERSION, MalformedRequest, ProtocolError
from ..revisions import NEWEST_HANDSHAKE, STATELESS, Revision
from .table import METHODS, Method


class Request(Struct):
    """A request: its method, its parameters, or what is wrong with them."""

    id: jsonrpc.RequestId
    name: str
    method: Method | None
    params: Params
    problem: ProtocolError | None = None


class _Parts(Struct):
    """Those parts of parameters that are weighed by themselves."""

    meta: Raw = field(default=EMPTY, name="_meta")
    arguments: Raw = EMPTY


_LARGE_BYTES = 64 * 1024
"""What a client may say of itself with `initialize` or in `_meta`: it is built, and kept with a session."""
_decode_parts = msgspec.json.Decoder(_Parts).decode


class _Decoders(dict[type[Params], Callable[[Raw], Params]]):
    """The decoders of parameters, each made when its method is first asked for."""

    def __missing__(self, kind: type[Params]) -> Callable[[Raw], Params]:
        decode = self[kind] = msgspec.json.Decoder(kind).decode
        return decode


_decoders = _Decoders()


def read(request_id: jsonrpc.RequestId, name: str, message: jsonrpc.Message) -> Request:
    """Find a request's method and decode its parameters."""
    method = METHODS.get(name)
    raw = EMPTY if isinstance(message.params, UnsetType) else message.params
    if message.__class__ is jsonrpc.UnweighedMessage:
        problem = _weigh(name, raw)
        if problem:
            failure = MalformedRequest(INVALID_PARAMS, f"Invalid params for {name}: {problem}")
            return Request(request_id, name, method, Params(), failure)
    try:
        decoded = _decoders[Params if method is None else method.params](raw)
    except jsonrpc.UNDECODABLE as error:
        if bytes(raw) == NULL:
            return read(request_id, name, jsonrpc.Message("2.0"))
        return _broken(request_id, name, method, raw, error)
    return Request(request_id, name, method, decoded)


def _weigh(name: str, raw: Raw) -> str:
    """Say what is too large about parameters, arguments of a tool apart: those are the tool's to judge."""
    if len(memoryview(raw)) <= _LARGE_BYTES:
        return ""
    try:
        parts = _decode_parts(raw)
    except jsonrpc.UNDECODABLE:
        return ""  # which is told with its reason when it is decoded as what it should be
    if name == "initialize" or len(bytes(parts.meta)) > _LARGE_BYTES:
        what = "the parameters" if name == "initialize" else "_meta"
        return f"{what} may have {_LARGE_BYTES} bytes"
    values = bytes(raw).count(b",") - bytes(parts.arguments).count(b",")
    return f"more than {jsonrpc.MOST_VALUES} values" if values > jsonrpc.MOST_VALUES else ""


def _broken(
    request_id: jsonrpc.RequestId, name: str, method: Method | None, raw: Raw, error: Exception
) -> Request:
    from ..features.argument_errors import reword  # which only a request that is refused needs

    problem = f"Invalid params for {name}: {reword(str(error))}"
    try:
        params = _decoders[Params](raw)
    except jsonrpc.UNDECODABLE:
        return Request(request_id, name, method, Params(), MalformedRequest(INVALID_PARAMS, problem))
    return Request(request_id, name, method, params, ProtocolError(INVALID_PARAMS, problem))


def client_of(request: Request, connection: Connection, expected: Revision | None) -> Client:
    """Tell who makes a request, and with that its revision.

    `expected` is the revision that the transport was told beside the message, where it was.
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


def _missing_meta(what: str) -> MalformedRequest:
    return MalformedRequest(INVALID_PARAMS, f"Invalid params: _meta needs {META_PREFIX}{what}")
