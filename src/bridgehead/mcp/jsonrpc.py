"""JSON-RPC 2.0: bytes to messages and back. Independent of MCP's methods.

`decode` never raises: it returns a message, a batch, or a `Malformed` with the error to answer. Encoding
works on bytes that are already JSON, so that a result is encoded once and never copied through Python
objects.
"""

from __future__ import annotations

from functools import cache
from itertools import takewhile
from typing import Any, Literal, TypeGuard, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from .errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError
from .shape import TOO_MUCH, fits
from .values.argument_errors import reword

RequestId = int | str
_Kind = TypeVar("_Kind")

encode = msgspec.json.Encoder().encode

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding untrusted JSON can raise; the last two come from broken UTF-8 and from deep nesting."""


class Message(Struct):
    """One JSON-RPC message as it came in: a request, a notification, or an answer to a request of ours."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Malformed(Struct, frozen=True):
    """Bytes that are not a message, and the error to answer with. `id` is set if it could be read."""

    error: ProtocolError
    id: RequestId | None = None


class Batch(Struct, frozen=True):
    """An array of messages, each decoded on its own."""

    items: list[Message | Malformed]


_NESTED = Malformed(ProtocolError(PARSE_ERROR, "Parse error: nested too deeply"))
LARGE_BYTES = 64 * 1024
"""Results above this are joined from their parts; below, formatting is faster."""
MAX_BATCH_ITEMS = 1024
"""Messages in one batch; an array with more is not read to its end."""
_MAX_EXPLAINED_BYTES = 64 * 1024
"""Only so much of a bad message is decoded to explain its error."""
_MAX_EXPLAINED_OF_ITEM = 1024
_MAX_ID_BYTES = 1024
_WHITE_SPACE = b" \t\r\n"
"""JSON's, which is less than Python's."""


class _Outline(Struct):
    """The outer members of a large object, undecoded."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode_message = msgspec.json.Decoder(Message).decode
_decode_outline = msgspec.json.Decoder(_Outline).decode
_decode_anything = msgspec.json.Decoder().decode


def decode(data: bytes | bytearray | memoryview) -> Message | Batch | Malformed:
    """Read one line or body. Never raises, and takes no more time than its bytes do."""
    return decode_counted(data) if fits(data) else _refuse_shape(bytes(data))


def decode_counted(
    data: bytes | bytearray | memoryview | Raw, max_explained: int = _MAX_EXPLAINED_BYTES
) -> Message | Batch | Malformed:
    """Read one line or body whose shape was checked."""
    # One typed pass for a valid message; only an invalid one is read again, to explain it.
    try:
        message = _decode_message(data)
        if not (data.__class__ is bytes and data.isascii()):
            str(data, "utf-8")  # the decoder skips raw members without checking their UTF-8
    except UNDECODABLE as error:
        return _explain(bytes(data), error, max_explained)
    if message.method is UNSET and message.result is UNSET and message.error is UNSET:
        return Malformed(_not_a_message("it has no method, result or error"), _id_of(message.id))
    return message


def _refuse_shape(data: bytes) -> Malformed:
    """Refuse a message that would build too much; nothing of it is decoded but its id."""
    try:
        members = _skim(data.strip()) or {}
    except RecursionError:
        return _NESTED
    except msgspec.ValidationError:  # a number that fits no type
        members = {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Malformed(ProtocolError(PARSE_ERROR, f"Parse error: {error}"))
    return Malformed(_not_a_message(TOO_MUCH), _id_of(members.get("id")))


def is_request(message: Message | Batch | Malformed) -> TypeGuard[Message | Batch]:
    """Whether it is a request, or a batch, which may contain some."""
    if isinstance(message, Message):
        return message.method is not UNSET and message.id is not UNSET
    return isinstance(message, Batch)


def _explain(data: bytes, problem: Exception, max_explained: int) -> Message | Batch | Malformed:
    """Find out, on the slow path, why bytes are not a message."""
    # `strip` without an argument is three times as fast, which matters for megabytes of white space. It also
    # strips \v and \f, which JSON does not allow.
    data = data.strip(_WHITE_SPACE) if b"\v" in data or b"\f" in data else data.strip()
    is_batch = data[:1] == b"["
    try:
        str(data, "utf-8")  # the decoder checks UTF-8 only in the strings that it builds
        if is_batch:
            return _explain_batch(data)
        value = _decode_anything(data) if len(data) <= max_explained else _skim(data)
    except msgspec.ValidationError as error:  # a number that fits no type; the rest is unread
        failure = _not_a_message(str(error))
    except RecursionError:
        return _NESTED
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        failure = ProtocolError(PARSE_ERROR, f"Parse error: {error}")
    else:
        if isinstance(value, dict):
            return _explain_object(value, _not_a_message(reword(str(problem), whole="the message")))
        return Malformed(_not_a_message("it is not an object"))
    return Malformed(failure) if is_batch or len(data) > max_explained else _explain_unreadable(data, failure)


def _skim(data: bytes) -> dict[str, Any] | None:
    """Return the members of a large object that its refusal needs; None if it is not an object."""
    if data[:1] != b"{":
        msgspec.json.decode(data, type=Raw)  # raises if it is not JSON
        return None
    outline = _decode_outline(data)
    members = {name: True for name in ("method", "result", "error") if getattr(outline, name) is not UNSET}
    raw_id = b"" if isinstance(outline.id, UnsetType) else bytes(outline.id)
    return members | ({"id": _decode_anything(raw_id)} if 0 < len(raw_id) <= _MAX_ID_BYTES else {})


def _explain_unreadable(data: Any, failure: ProtocolError) -> Message | Malformed:
    """Find the id with the standard library's laxer reader, which takes half a surrogate pair and 1e400."""
    import json  # lazy: only malformed messages need it

    try:
        value = json.loads(str(data, "utf-8"))  # from bytes it would accept UTF-16 and UTF-32 too
    except (ValueError, RecursionError) as error:
        is_known = failure.code == PARSE_ERROR
        return Malformed(failure if is_known else ProtocolError(PARSE_ERROR, f"Parse error: {error}"))
    # Accepted by the laxer reader but not by msgspec, whose message would mislead: "data was truncated".
    if failure.code == PARSE_ERROR and rb"\ud" in bytes(data).lower():
        half = r"Parse error: a string has half a character in it, such as \ud83d alone. Send the whole one."
        failure = ProtocolError(PARSE_ERROR, half)
    return _explain_object(value, failure) if isinstance(value, dict) else Malformed(failure)


def _explain_object(value: dict[str, Any], failure: ProtocolError) -> Message | Malformed:
    request_id = _id_of(value.get("id"))
    if "method" not in value and not value.keys().isdisjoint(("result", "error")):
        # An answer is never answered, even a malformed one; the question that waits for it fails instead.
        return Message("2.0", UNSET if request_id is None else request_id, error=Raw(b"null"))
    return Malformed(failure, request_id)


def _explain_batch(data: bytes) -> Batch | Malformed:
    """Split an array into its messages; raises one of `UNDECODABLE` if it is not JSON."""
    try:
        # A list of any length would be read to its end before it is counted; this type stops at the limit.
        members = msgspec.structs.astuple(msgspec.json.decode(data, type=_items_type()))
    except msgspec.ValidationError:
        return Malformed(_not_a_message(f"a batch may have {MAX_BATCH_ITEMS} messages"))
    items = list(takewhile(lambda item: item is not UNSET, members))
    if not items:
        return Malformed(_not_a_message("the batch is empty"))
    return Batch([_decode_item(item) for item in items])


@cache
def _items_type() -> type[Struct]:
    fields = [(f"item{n}", Raw | UnsetType, UNSET) for n in range(MAX_BATCH_ITEMS)]
    return msgspec.defstruct("Items", fields, array_like=True, forbid_unknown_fields=True)


def _decode_item(item: Raw) -> Message | Malformed:
    if bytes(item)[:1] == b"[":  # not decoded: each level would be read once per level above it
        return Malformed(_not_a_message("a batch inside a batch"))
    decoded = decode_counted(item, _MAX_EXPLAINED_OF_ITEM)
    return Malformed(_not_a_message("a batch inside a batch")) if isinstance(decoded, Batch) else decoded


def _not_a_message(problem: str) -> ProtocolError:
    return ProtocolError(INVALID_REQUEST, f"Invalid request: {problem}")


def _id_of(value: object) -> RequestId | None:
    """Return an id with which a message can be answered."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:  # half a surrogate pair, which cannot be sent back
            return None
        return value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def encode_id(request_id: RequestId | None) -> bytes:
    """Encode an id exactly as it came."""
    return b"%d" % request_id if request_id.__class__ is int else encode(request_id)


def result(request_id: RequestId, body: bytes) -> bytes:
    """Wrap an encoded result object as the answer to a request."""
    if len(body) > LARGE_BYTES:
        return large_result(request_id, body)
    if request_id.__class__ is int:  # the usual case, with one formatting step
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (request_id, body)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), body)


def large_result(request_id: RequestId, *body: bytes | memoryview) -> bytes:
    """Wrap a large object given in parts, copying it once: 16 MB take 1 ms, and 10 ms with `%b`."""
    return b"".join((b'{"jsonrpc":"2.0","id":', encode(request_id), b',"result":', *body, b"}"))


def error(request_id: RequestId | None, failure: ProtocolError) -> bytes:
    """Encode a failure as the answer to a request; its id is null if it could not be read."""
    member: dict[str, Any] = {"code": failure.code, "message": failure.message}
    if failure.data is not None:
        member["data"] = failure.data
    try:
        encoded = encode(member)
    except (TypeError, ValueError):  # the data cannot be encoded, or the message is not Unicode
        encoded = encode({"code": failure.code, "message": ascii(failure.message)})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode_id(request_id), encoded)


def request(request_id: RequestId, method: str, params: Any) -> bytes:
    """Encode a request of ours to the client."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        encode_id(request_id),
        encode(method),
        encode(params),
    )


def notification(method: str, params: Any = None) -> bytes:
    """Encode a notification of ours to the client."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), encode(params))


def decode_as(raw: Raw, kind: type[_Kind]) -> _Kind:
    """Decode a part of a message as a type; raises one of `UNDECODABLE`."""
    return msgspec.json.decode(raw, type=kind)


def decode_value(raw: Raw | UnsetType) -> Any:
    """Decode a part of a message as plain values; raises one of `UNDECODABLE`."""
    if isinstance(raw, UnsetType):
        return None
    return _decode_anything(raw)
