"""Wire: requests to the game and replies from it, as bytes. Knows no socket and keeps nothing.

The game's `error` is a plain text; a relay or another implementation may send a JSON-RPC error object. A
reply is taken apart without reading its result, which can be large: who asked for it knows its type.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from bridgehead.runtime.errors import BridgeError

from ..errors import Disconnected, NotConnected, ReplyTimeout

_NULL = b"null"


class Reply(Struct):
    """What came in: a reply where it has an id, a notice where it has a method."""

    id: int | str | UnsetType | None = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET

    @property
    def has_failed(self) -> bool:
        """Tell whether it carries an error."""
        return self.error is not UNSET and bytes(self.error) != _NULL


class Failure(Struct, frozen=True):
    """An error of the far side: its text, its code where it has one, and further data."""

    message: str
    code: int | str | None = None
    data: Any = None


_decode = msgspec.json.Decoder(Reply).decode
_encode = msgspec.json.Encoder().encode
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def encode_request(request_id: int, method: str, params: bytes) -> bytes:
    """Return a request; parameters are always there, because some games stay silent without them."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (request_id, method.encode(), params)


def encode_params(params: Any) -> bytes:
    """Return parameters as they go into a request."""
    return _encode(params)


def decode_reply(frame: bytes) -> Reply | None:
    """Return what came in; None where it is not an object of the expected shape."""
    try:
        return _decode(frame)
    except UNREADABLE:
        return None


def decode_failure(raw: bytes) -> Failure:
    """Return the error of a reply, whichever of its shapes it has."""
    try:
        value = msgspec.json.decode(raw)
    except UNREADABLE:
        return Failure("an error that cannot be read")
    if isinstance(value, dict):
        code = value.get("code")
        message = value.get("message")
        return Failure(
            message if isinstance(message, str) else msgspec.json.encode(value).decode(),
            code if isinstance(code, int | str) and not isinstance(code, bool) else None,
            value.get("data"),
        )
    return Failure(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def encode_result(request_id: int | str | None, result: bytes) -> bytes:
    """Return a reply with a result, as a relay sends it."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode(request_id), result)


def encode_error(request_id: int | str | None, error: bytes) -> bytes:
    """Return a reply with an error, as a relay sends it."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(request_id), error)


def encode_notification(method: str, params: Any) -> bytes:
    """Return a message that nobody asked for."""
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


_CODE = -32000
_MARK = "bridgehead"


def encode_bridge_error(error: BridgeError) -> bytes:
    """Return a failure of ours as a JSON-RPC error."""
    data = {_MARK: error.code, "elapsed": getattr(error, "elapsed", None)}
    return msgspec.json.encode({"code": _CODE, "message": error.message, "data": data})


def reencode_failure(failure: Failure) -> bytes:
    """Return an error of the game as it came: a text, or an object."""
    if failure.code is None and failure.data is None:
        return msgspec.json.encode(failure.message)
    return msgspec.json.encode({"code": failure.code, "message": failure.message, "data": failure.data})


def decode_bridge_error(method: str, failure: Failure) -> BridgeError | None:
    """Return the failure of ours that an error stands for; None where it is not one."""
    kind = failure.data.get(_MARK) if isinstance(failure.data, dict) else None
    if kind is None:
        return None
    if kind == Disconnected.code:
        return Disconnected(method)
    if kind == ReplyTimeout.code:
        elapsed = failure.data["elapsed"]
        return ReplyTimeout(method, elapsed if isinstance(elapsed, float) else 0.0)
    return NotConnected(failure.message, next_step="Ask connection_status what to do.")
