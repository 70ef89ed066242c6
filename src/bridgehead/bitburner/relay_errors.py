"""Relay errors: how a failure at the process that owns the game reaches the process that shares it."""

from __future__ import annotations

import msgspec

from bridgehead.runtime.errors import BridgeError

from . import wire
from .errors import Disconnected, NotConnected, Unanswered

_CODE = -32000
_MARK = "bridgehead"


def written(error: BridgeError) -> bytes:
    """Return a failure of ours as a JSON-RPC error."""
    data = {_MARK: error.code, "elapsed": getattr(error, "elapsed", None)}
    return msgspec.json.encode({"code": _CODE, "message": error.message, "data": data})


def passed_on(failure: wire.Failure) -> bytes:
    """Return an error of the game as it came: a text, or an object."""
    if failure.code is None and failure.data is None:
        return msgspec.json.encode(failure.message)
    return msgspec.json.encode({"code": failure.code, "message": failure.message, "data": failure.data})


def read(method: str, failure: wire.Failure) -> BridgeError | None:
    """Return the failure of ours that an error stands for; None where it is not one."""
    kind = failure.data.get(_MARK) if isinstance(failure.data, dict) else None
    if kind is None:
        return None
    if kind == Disconnected.code:
        return Disconnected(method)
    if kind == Unanswered.code:
        elapsed = failure.data["elapsed"]
        return Unanswered(method, elapsed if isinstance(elapsed, float) else 0.0)
    return NotConnected(failure.message, next_step="Ask connection_status what to do.")
