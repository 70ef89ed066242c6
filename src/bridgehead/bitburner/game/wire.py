"""Wire: requests to the game and replies from it, as bytes. Knows no socket and keeps nothing.

The game's `error` is a plain text; a relay or another implementation may send a JSON-RPC error object. A
reply is taken apart without reading its result, which can be large: who asked for it knows its type.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound, StorageError

from ..errors import (
    BackupFailed,
    Conflict,
    Disconnected,
    InvalidReply,
    NotConnected,
    RemoteFailure,
    ReplyTimeout,
    ReplyTooLarge,
    UnsupportedByGame,
)

NULL = b"null"


class Reply(Struct):
    """What came in: a reply where it has an id, a notice where it has a method."""

    id: int | str | UnsetType | None = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class Failure(Struct, frozen=True):
    """An error of the far side: its text, its code where it has one, and further data."""

    message: str
    code: int | str | None = None
    data: Any = None


REPLACEMENT = rb"\ufffd"
_SURROGATES = re.compile(
    rb"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_FIRST_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_LAST_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*\}\s*$')
_ID_WINDOW = 100
_BACKSLASH = ord("\\")

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
        repaired = replace_lone_surrogates(frame)
        if repaired == frame:
            return None
    try:
        return _decode(repaired)
    except UNREADABLE:
        return None


def replace_lone_surrogates(frame: bytes) -> bytes:
    """Put U+FFFD where JSON escapes half a surrogate pair.

    The game's texts are UTF-16, and a script can cut one in the middle of an emoji. Such a text is no
    Unicode, and without this one file would make the whole server unreadable.
    """
    parts: list[bytes] = []
    done = 0
    for found in _SURROGATES.finditer(frame):
        if found["pair"] is None and not _is_escaped(frame, found.start()):
            parts += [frame[done : found.start()], REPLACEMENT]
            done = found.end()
    return b"".join((*parts, frame[done:])) if parts else frame


def _is_escaped(frame: bytes, at: int) -> bool:
    """Return whether the backslash at a place is itself behind a backslash that escapes it."""
    before = at
    while before and frame[before - 1] == _BACKSLASH:
        before -= 1
    return (at - before) % 2 == 1


def find_request_id(frame: bytes) -> int | None:
    """Return the id of a reply that is too large to be decoded; games put it first or last."""
    found = _FIRST_ID.match(frame[:_ID_WINDOW]) or _LAST_ID.search(frame[-_ID_WINDOW:])
    return int(found[1]) if found else None


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
_KINDS: dict[str, type[BridgeError]] = {
    kind.code: kind
    for kind in (
        BackupFailed,
        Conflict,
        Disconnected,
        InvalidArgument,
        InvalidReply,
        NotConnected,
        NotFound,
        RemoteFailure,
        ReplyTimeout,
        ReplyTooLarge,
        StorageError,
        UnsupportedByGame,
    )
}


class _ErrorData(Struct, omit_defaults=True):
    """What a failure of ours carries beside its message on the way from the owner of a game to a guest."""

    bridgehead: str
    next_step: str = ""
    elapsed: float | None = None
    method: str = ""
    remote_message: str = ""
    remote_code: int | str | None = None


def encode_bridge_error(error: BridgeError) -> bytes:
    """Return a failure of ours as a JSON-RPC error."""
    data = _ErrorData(error.code, error.next_step, getattr(error, "elapsed", None))
    if isinstance(error, RemoteFailure):
        data.method, data.remote_message = error.method, error.remote_message
        data.remote_code = error.remote_code
    return _encode({"code": _CODE, "message": error.message, "data": data})


def reencode_failure(failure: Failure) -> bytes:
    """Return an error of the game as it came: a text, or an object."""
    if failure.code is None and failure.data is None:
        return _encode(failure.message)
    return _encode({"code": failure.code, "message": failure.message, "data": failure.data})


def decode_bridge_error(failure: Failure) -> BridgeError | None:
    """Return the failure of ours that an error stands for; None where it is not one."""
    try:
        data = msgspec.convert(failure.data, _ErrorData)
    except msgspec.ValidationError:
        return None
    kind = _KINDS.get(data.bridgehead, NotConnected)
    # Made without its own constructor: the message is there already, as the owner worded it.
    error = kind.__new__(kind)
    BridgeError.__init__(
        error, failure.message, next_step=data.next_step or "Ask connection_status what to do."
    )
    if isinstance(error, RemoteFailure):
        error.method, error.remote_message = data.method, data.remote_message
        error.remote_code = data.remote_code
    if isinstance(error, ReplyTimeout):
        error.elapsed = data.elapsed or 0.0
    return error
