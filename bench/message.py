"""The messages the bench sends, and the check that an answer is the right one."""

import json
from typing import Any

FIRST_ID = 1_000_000
"""Ids are counted from here, so that all of them have the same number of digits."""

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

_META = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},'
    b'"io.modelcontextprotocol/clientCapabilities":{}},'
)
_CALL = (
    b'{"jsonrpc":"2.0","id":%%d,"method":"tools/call",'
    b'"params":{%s"name":"echo","arguments":{"text":"hello from call %%d"}}}'
)
CALL = {HANDSHAKE: _CALL % b"", STATELESS: _CALL % _META}
"""For each era the bytes of a call, to be filled in with its id, twice."""


class WrongAnswer(Exception):
    """A server said something else than it was asked for; no number of its kind counts."""


def text(number: int) -> str:
    """Say which text the call with this id echoes."""
    return f"hello from call {number}"


def check(answer: bytes, number: int | None = None) -> int:
    """Make sure that this is the right answer to a call, and return the call's id."""
    try:
        found = _id_of_right(json.loads(answer))
    except (ValueError, KeyError, TypeError, AttributeError):
        found = None
    if found is None or number not in {None, found}:
        raise WrongAnswer(f"wrong answer to a call: {answer[:300]!r}")
    return found


def _id_of_right(message: dict[str, Any]) -> int | None:
    """Return the id of an answer, if it is the text of the call with that id and nothing else."""
    number: int = message["id"]
    result = message["result"]
    right = result["content"] == [{"type": "text", "text": text(number)}] and not result.get("isError")
    return number if right and message["jsonrpc"] == "2.0" else None
