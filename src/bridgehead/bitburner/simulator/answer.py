"""Answer: the game's reply to one message. No sockets, no waiting."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import msgspec

from .methods import METHODS, Call, Case, Refusal, Silence, refusal
from .world import World

_SPOKEN = {"toString": "[object Object]", "toLocaleString": "[object Object]", "valueOf": {}}
_SILENT = frozenset({"hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "__proto__"})
_ECHO = "constructor"
_INHERITED = _SILENT | set(_SPOKEN) | {_ECHO}
"""The game looks a method up in a plain object, which inherits these from Object.prototype."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def reply(world: World, message: Any) -> bytes | None:
    """Return the reply to a decoded request, or None if the game stays silent."""
    fields: dict[str, Any] = message if isinstance(message, dict) else {}
    method = str(fields.get("method"))
    if method in _INHERITED:
        if method in _SILENT:
            return None
        return encode(message if method == _ECHO else _SPOKEN[method])
    answered: dict[str, Any] = {}
    try:
        if method not in METHODS or not world.knows(method):
            raise refusal(world, Case.UNKNOWN, method, "")
        answered["result"] = METHODS[method](Call(world, method, fields.get("params", msgspec.UNSET)))
    except Refusal as refused:
        answered["error"] = str(refused)
    except Silence:
        return None
    named = {"id": fields["id"]} if "id" in fields else {}
    # The second generation puts the id last, the third before the result.
    ordered = {**answered, **named} if world.is_second else {**named, **answered}
    return encode({"jsonrpc": "2.0", **ordered})


def decode(text: str | bytes) -> Any:
    """Decode JSON as a browser does: half a surrogate pair is accepted. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:

        def refuse(constant: str) -> NoReturn:  # NaN and Infinity, which a browser refuses
            raise ValueError(constant)

        return json.loads(text, parse_constant=refuse)


def encode(value: Any) -> bytes:
    """Encode JSON as a browser does."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text).encode()
