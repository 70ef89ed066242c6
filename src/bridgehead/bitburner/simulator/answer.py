"""Answer: one message in, one message out, as the game does it. No socket, no waiting: the core."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import msgspec

from .methods import METHODS, Call, Case, Refusal, Silence, known, refusal
from .world import World

_BORROWED = frozenset({"toString", "toLocaleString"})
"""Methods that no one wrote: the game looks a method up in a plain object, which inherits these."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def answer(world: World, request: str | bytes) -> bytes | None:
    """Return the reply to the text of a request, or None where the game stays silent."""
    try:
        message = decode(request)
    except (ValueError, RecursionError):
        return None
    return None if message is None else reply(world, message)


def reply(world: World, message: Any) -> bytes | None:
    """Return the reply to a request that is already decoded."""
    fields: dict[str, Any] = message if isinstance(message, dict) else {}
    method = str(fields.get("method"))
    if method in _BORROWED:
        return encode("[object Object]")
    said: dict[str, Any] = {"jsonrpc": "2.0"}
    try:
        said["result"] = _result(world, method, fields)
    except Refusal as refused:
        said["error"] = str(refused)
    except Silence:
        return None
    if "id" in fields:
        said["id"] = fields["id"]
    return encode(said)


def _result(world: World, method: str, fields: dict[str, Any]) -> Any:
    if method not in known(world):
        raise refusal(world, Case.UNKNOWN, method, "")
    return METHODS[method](Call(world, method, fields.get("params", msgspec.UNSET)))


def decode(text: str | bytes) -> Any:
    """Decode JSON as a browser does, which takes half a surrogate pair for a character; raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def encode(value: Any) -> bytes:
    """Encode JSON as a browser does."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text).encode()
