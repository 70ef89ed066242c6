"""JSON-RPC: bytes for `decode`, and for the dispatcher behind it, with Python's own JSON reader as the judge.

What must hold of any bytes: no exception; what is not JSON is a parse error, what is no message an invalid
request, each with the id where there is one; the dispatcher's answer is valid, or there is none due, and
nothing is left behind.
"""

import json
import random
import sys
from typing import Any

from msgspec import UNSET, Raw

from bridgehead.mcp import jsonrpc
from bridgehead.mcp.errors import INVALID_REQUEST, PARSE_ERROR
from bridgehead.mcp.jsonrpc import MAX_BATCH_ITEMS, Batch, Malformed, Message
from tests.support.any_bytes import ERAS, META, METHODS, VALID, Session, is_answer

WORDS = (
    b'{"jsonrpc":"2.0"}', b'"jsonrpc":"2.0"', b'"id":1', b'"id":null', b'"id":"a"', b'"id":1.5', b'"id":true',
    b'"method":"ping"', b'"method":"tools/call"', b'"params":{}', b'"params":[]', b'"result":{}',
    b'"error":{}',
    b'"_meta":{}', b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\ud800", b"\\u0000", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", b"NaN", b"1e400", b"-0", b"null", b"true", b"[[[[[[[[", b'{"a":{"a":{"a":',
)  # fmt: skip


def _seeds() -> tuple[bytes, ...]:
    """One valid request for each method, plain and in the stateless era, an answer, a batch."""
    found: list[Any] = []
    for method in METHODS:
        found.append({"jsonrpc": "2.0", "id": 1, "method": method, "params": VALID})
        found.append({"jsonrpc": "2.0", "id": "a", "method": method, "params": {**VALID, "_meta": META}})
    found.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    found.append({"jsonrpc": "2.0", "id": 5, "result": {}})
    found.append({"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "no"}})
    found.append(found[:3])
    return tuple(json.dumps(one).encode() for one in found)


SEEDS = _seeds()


class Broken(AssertionError):
    """Something that must hold of any bytes does not."""


def _read_integer(digits: str) -> float:
    """Read an integer; one of thousands of digits is JSON too, though `int` refuses to read it."""
    return int(digits) if len(digits) < sys.int_info.default_max_str_digits else float(digits)


def judge(data: bytes) -> None:
    """See that `decode` says of these bytes what another reader makes of them."""
    decoded = jsonrpc.decode(data)
    try:
        value = json.loads(data.decode("utf-8"), parse_int=_read_integer)
    except (ValueError, RecursionError):
        if not (_is_refused_unread(decoded) or _is_broken_answer(decoded)):
            raise Broken(f"not JSON, but decoded as {decoded}") from None
        return
    if isinstance(decoded, Malformed):
        _judge_refusal(decoded, value)
    elif isinstance(decoded, Batch):
        if not isinstance(value, list) or len(value) != len(decoded.items):
            raise Broken(f"{len(decoded.items)} messages of {value!r}")
    else:
        _judge_message(decoded, value)


def _is_refused_unread(decoded: Message | Batch | Malformed) -> bool:
    """Tell whether these bytes are no JSON for us; a batch that is too long is not read to its end."""
    if not isinstance(decoded, Malformed):
        return False
    return decoded.error.code == PARSE_ERROR or f"may have {MAX_BATCH_ITEMS}" in decoded.error.message


def _is_broken_answer(decoded: Message | Batch | Malformed) -> bool:
    """Tell whether this is an answer that cannot be read: whoever waits for it hears so."""
    return isinstance(decoded, Message) and decoded.method is UNSET and decoded.error == Raw(b"null")


def _judge_refusal(refused: Malformed, value: Any) -> None:
    if refused.error.code not in (PARSE_ERROR, INVALID_REQUEST):
        raise Broken(f"refused with {refused.error.code}")
    found = value.get("id") if isinstance(value, dict) else None
    if refused.id is not None and refused.id != found:
        raise Broken(f"refused for {refused.id!r}, but the id is {found!r}")


def _judge_message(message: Message, value: Any) -> None:
    if not isinstance(value, dict):
        raise Broken(f"{value!r} is no message, but was decoded as {message}")
    if isinstance(message.method, str) and message.method != value.get("method"):
        raise Broken(f"{message.method!r} was decoded of {value!r}")
    if isinstance(message.id, int | str) and message.id != value.get("id"):
        raise Broken(f"{message.id!r} was decoded of {value!r}")


async def check(data: bytes, seed: int) -> None:
    """Decode some bytes, and let the dispatcher of one era answer them. Raises Broken."""
    judge(data)
    dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    session = Session(dice.choice(ERAS))
    answer = await session.receive(data)
    if answer is not None and not is_answer(answer):
        raise Broken(f"answered with {answer!r}")
    if not session.is_at_rest():
        raise Broken("something was left behind")
