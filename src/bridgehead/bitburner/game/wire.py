"""Wire: encode requests to the game and decode its replies. Pure.

The game's `error` is a plain string; a relay or another implementation may send a JSON-RPC error object. A
reply is decoded without its result, which can be large and whose type only the caller knows.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from bridgehead.runtime.errors import BridgeError, InvalidArgument, NotFound, StorageError

from ..errors import (
    BackupFailed,
    Conflict,
    Disconnected,
    InvalidReply,
    MissingFile,
    NotConnected,
    RemoteFailure,
    ReplyTimeout,
    ReplyTooLarge,
    UnsupportedByGame,
)

NULL = b"null"


class Reply(Struct):
    """An incoming message: a reply if it has an id, a notification if it has a method."""

    id: int | str | UnsetType | None = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class Failure(Struct, frozen=True):
    """An error of the far side: its text, and its code and data if there are any."""

    message: str
    code: int | str | None = None
    data: Any = None


_PRIVATE_USE = 0x100000
"""Replaces a lone surrogate inside this process: U+D83D becomes U+10D83D, a character for private use."""
_HALVES = re.compile("[\U0010d800-\U0010dfff]")
_STAND_INS = re.compile(rb"\xf4\x8d[\xa0-\xbf][\x80-\xbf]")
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


def encode_params(params: Any, halves: AbstractSet[str] = frozenset()) -> bytes:
    """Encode parameters for the game; `halves`, which stand for lone surrogates, become those again."""
    data = _encode(params)
    # The test costs nothing beside the encoding, and nearly no file needs the rest.
    if b"\xf4\x8d" not in data:
        return data

    def restore(match: re.Match[bytes]) -> bytes:
        character = match[0].decode()
        return b"\\u%04x" % (ord(character) - _PRIVATE_USE) if character in halves else match[0]

    return _STAND_INS.sub(restore, data)


def encode_request(request_id: int, method: str, params: bytes) -> bytes:
    """Encode a request, always with parameters: version 2 of the game does not answer without them."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (request_id, method.encode(), params)


def decode_reply(frame: bytes, halves: set[str]) -> Reply | None:
    """Decode an incoming message; None if it is not an object of the expected form.

    `halves` gets the characters that stand for lone surrogates in it.
    """
    try:
        return _decode(frame)
    except UNREADABLE:
        repaired = stand_in_for_lone_surrogates(frame, halves)
        if repaired == frame:
            return None
    try:
        return _decode(repaired)
    except UNREADABLE:
        return None


def stand_in_for_lone_surrogates(frame: bytes, halves: set[str]) -> bytes:
    """Replace JSON escapes of lone surrogates with characters that stand for them.

    The game's strings are UTF-16, and a script can cut one in the middle of an emoji. The JSON decoder
    refuses the whole frame then, so without this one file would make a whole server unreadable. What an agent
    or a sync writes back has the same half in it: `encode_params` undoes this.
    """
    parts: list[bytes] = []
    done = 0
    for match in _SURROGATES.finditer(frame):
        if match["pair"] is None and not _is_escaped(frame, match.start()):
            stand_in = chr(_PRIVATE_USE + int(match[0].removeprefix(rb"\u"), 16))
            halves.add(stand_in)
            parts += [frame[done : match.start()], stand_in.encode()]
            done = match.end()
    return b"".join((*parts, frame[done:])) if parts else frame


def find_stand_in(content: str, halves: AbstractSet[str]) -> tuple[int, str]:
    """Return the first character that stands for a lone surrogate, with its place; empty if there is none."""
    found = () if content.isascii() or not halves else _HALVES.finditer(content)
    return next(((match.start(), match[0]) for match in found if match[0] in halves), (-1, ""))


def _is_escaped(frame: bytes, at: int) -> bool:
    """Return whether the backslash at an offset is itself escaped by another one."""
    before = at
    while before and frame[before - 1] == _BACKSLASH:
        before -= 1
    return (at - before) % 2 == 1


def find_request_id(frame: bytes) -> int | None:
    """Return the id of a reply that is too large to decode; games put it first (3.x) or last."""
    match = _FIRST_ID.match(frame[:_ID_WINDOW]) or _LAST_ID.search(frame[-_ID_WINDOW:])
    return int(match[1]) if match else None


def decode_failure(raw: bytes) -> Failure:
    """Decode the error of a reply, a string or an object."""
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
    """Encode a relay's reply with a result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode(request_id), result)


def encode_error(request_id: int | str | None, error: bytes) -> bytes:
    """Encode a relay's reply with an error."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(request_id), error)


def encode_notification(method: str, params: Any) -> bytes:
    """Encode a notification."""
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
    """The fields of a BridgeError, beside its message, on the way from the owner to a guest."""

    bridgehead: str
    next_step: str = ""
    elapsed: float | None = None
    method: str = ""
    remote_message: str = ""
    remote_code: int | str | None = None


def encode_bridge_error(error: BridgeError) -> bytes:
    """Encode a BridgeError as a JSON-RPC error."""
    data = _ErrorData(error.code, error.next_step, getattr(error, "elapsed", None))
    if isinstance(error, RemoteFailure):
        data.method, data.remote_message = error.method, error.remote_message
        data.remote_code = error.remote_code
    return _encode({"code": _CODE, "message": error.message, "data": data})


def reencode_failure(failure: Failure) -> bytes:
    """Encode an error of the game as it was received: a string, or an object."""
    if failure.code is None and failure.data is None:
        return _encode(failure.message)
    return _encode({"code": failure.code, "message": failure.message, "data": failure.data})


def decode_bridge_error(failure: Failure) -> BridgeError | None:
    """Rebuild the owner's BridgeError from an error reply; None for an error of the game."""
    try:
        data = msgspec.convert(failure.data, _ErrorData)
    except msgspec.ValidationError:
        return None
    kind = _KINDS.get(data.bridgehead, NotConnected)
    if kind is NotFound and data.method:  # the same code for a file that the game does not have
        kind = MissingFile
    # Without the class's own constructor, which would compose the message again: it is complete already.
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
