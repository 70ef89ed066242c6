"""JSON-RPC 2.0: bytes to messages and back. Knows nothing of MCP's methods.

Whatever the bytes are, `decode` returns a value: a message, a batch, or a `Malformed` that says which answer
it deserves. Encoding works on bytes that are already JSON, so that a result is encoded once and never copied
through Python objects.
"""

from __future__ import annotations

from typing import Any, Literal, TypeGuard, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from .errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError

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
    """Bytes that are no message, and the error that says so. `id` is set where it could be read."""

    error: ProtocolError
    id: RequestId | None = None


class Batch(Struct, frozen=True):
    """An array of messages, each decoded on its own."""

    items: list[Message | Malformed]


_decode_message = msgspec.json.Decoder(Message).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_anything = msgspec.json.Decoder().decode


def decode(data: bytes | bytearray | memoryview | Raw) -> Message | Batch | Malformed:
    """Read one line or body. Never raises."""
    # One typed pass for what is right; only what is wrong is read again, to say what is wrong with it.
    try:
        message = _decode_message(data)
        if data.__class__ is not bytes or not data.isascii():
            str(data, "utf-8")  # what the decoder skips it does not look at, and it would be kept as it is
    except UNDECODABLE:
        return _explain(data)
    if message.method is UNSET and message.result is UNSET and message.error is UNSET:
        return Malformed(_not_a_message("it has no method, result or error"), _id_of(message.id))
    return message


def is_request(message: Message | Batch | Malformed) -> TypeGuard[Message | Batch]:
    """Tell whether a message, or one of a batch, wants an answer that takes work."""
    if isinstance(message, Message):
        return message.method is not UNSET and message.id is not UNSET
    return isinstance(message, Batch)


def _explain(data: bytes | bytearray | memoryview | Raw) -> Message | Batch | Malformed:
    """Find out, on the slow path, why bytes are not a message."""
    try:
        value = _decode_anything(data)
    except msgspec.ValidationError as error:  # a number that fits no type; what comes behind it is unread
        return _explain_unreadable(data, _not_a_message(str(error)))
    except RecursionError:
        return Malformed(ProtocolError(PARSE_ERROR, "Parse error: nested too deeply"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _explain_unreadable(data, ProtocolError(PARSE_ERROR, f"Parse error: {error}"))
    if isinstance(value, list):
        return _explain_batch(data, value)
    if isinstance(value, dict):
        return _explain_object(value, _not_a_message(_first_problem(data)))
    return Malformed(_not_a_message("it is not an object"))


def _explain_unreadable(data: Any, failure: ProtocolError) -> Message | Malformed:
    """Find out whose bytes these are, where a laxer reader can; half a surrogate pair and 1e400 need one."""
    import json  # only what is broken needs it

    try:
        value = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        is_known = failure.code == PARSE_ERROR
        return Malformed(failure if is_known else ProtocolError(PARSE_ERROR, f"Parse error: {error}"))
    return _explain_object(value, failure) if isinstance(value, dict) else Malformed(failure)


def _explain_object(value: dict[str, Any], failure: ProtocolError) -> Message | Malformed:
    found = _id_of(value.get("id"))
    if "method" not in value and not value.keys().isdisjoint(("result", "error")):
        # A broken answer is never answered itself; whoever waits for it hears that it cannot be read.
        return Message("2.0", UNSET if found is None else found, error=Raw(b"null"))
    return Malformed(failure, found)


def _explain_batch(data: Any, value: list[Any]) -> Batch | Malformed:
    if not value:
        return Malformed(_not_a_message("the batch is empty"))
    items = []
    for raw in _decode_items(data):
        item = decode(raw)
        items.append(Malformed(_not_a_message("a batch inside a batch")) if isinstance(item, Batch) else item)
    return Batch(items)


def _first_problem(data: Any) -> str:
    try:
        _decode_message(data)
    except UNDECODABLE as error:
        from .features.argument_errors import reword  # only what is broken needs it

        return reword(str(error), whole="the message")
    return "it is not a JSON-RPC 2.0 message"


def _not_a_message(problem: str) -> ProtocolError:
    return ProtocolError(INVALID_REQUEST, f"Invalid request: {problem}")


def _id_of(value: object) -> RequestId | None:
    """Return an id with which a message can be answered."""
    if isinstance(value, str):
        return value if value.isascii() or _is_unicode(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_unicode(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def encode_id(request_id: RequestId | None) -> bytes:
    """Encode an id exactly as it came."""
    return b"%d" % request_id if request_id.__class__ is int else encode(request_id)


def result(request_id: RequestId, body: bytes) -> bytes:
    """Wrap an encoded result object as the answer to a request."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode_id(request_id), body)


def error(request_id: RequestId | None, failure: ProtocolError) -> bytes:
    """Encode a failure as the answer to a request; id null where the request's own could not be read."""
    member: dict[str, Any] = {"code": failure.code, "message": failure.message}
    if failure.data is not None:
        member["data"] = failure.data
    try:
        encoded = encode(member)
    except (TypeError, ValueError):  # what came along cannot be said in JSON
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
    return None if isinstance(raw, UnsetType) else _decode_anything(raw)
