"""Answer: one message in, one message out, as the game does it. No socket, no waiting: the core."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import msgspec

from .methods import METHODS, Call, Case, Refusal, Silence, known, refusal
from .world import World

_SPOKEN = {"toString": "[object Object]", "toLocaleString": "[object Object]", "valueOf": {}}
_SILENT = frozenset({"hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "__proto__"})
_ECHO = "constructor"
_BORROWED = _SILENT | set(_SPOKEN) | {_ECHO}
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
        return _answer_borrowed(method, message)
    said: dict[str, Any] = {}
    try:
        said["result"] = _result(world, method, fields)
    except Refusal as refused:
        said["error"] = str(refused)
    except Silence:
        return None
    named = {"id": fields["id"]} if "id" in fields else {}
    # The second generation puts the id last, the third before the result.
    ordered = {**said, **named} if world.is_second else {**named, **said}
    return encode({"jsonrpc": "2.0", **ordered})


def _answer_borrowed(method: str, message: Any) -> bytes | None:
    if method in _SILENT:
        return None
    return encode(message if method == _ECHO else _SPOKEN[method])


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
