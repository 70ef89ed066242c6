"""Garbage: frames that are no reply to anything that was asked, of every kind that a listener may meet."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

UNSOLICITED = "never-asked"

_MALFORMED = (b"{", b'{"jsonrpc": "2.0", "id": 1, "resu', b"", b"\xef\xbb\xbf{}", b"<html></html>", b"NaN")
_NO_OBJECT = (b'"[object Object]"', b"[]", b"null", b"true", b"0", b'[{"id": 1, "result": "OK"}]')
_NO_REPLY = (b"{}", b'{"jsonrpc":"2.0"}', b'{"id":null,"result":"OK"}', b'{"jsonrpc":"2.0","result":"OK"}')
_NONSENSE = (None, True, {"not": "this"}, [1, [2]])


class Frame(msgspec.Struct, frozen=True):
    """What is sent, as text or as binary."""

    content: bytes
    is_text: bool = True


def garbage(random: Random, message_id: object, stale: Sequence[bytes]) -> Frame:
    """Draw one frame of garbage, with an eye on the id that is asked for now and the replies of before."""
    match random.randrange(4):
        case 0:
            return Frame(random.choice(random.choice((_MALFORMED, _NO_OBJECT, _NO_REPLY))))
        case 1:
            return _unsolicited(random, message_id)
        case 2 if stale:
            return Frame(random.choice(stale))
        case _:
            return _binary(random)


def _unsolicited(random: Random, message_id: object) -> Frame:
    """Make a whole reply to what no one asked: its id is far off, or looks like the right one and is not."""
    wanted = random.choice((UNSOLICITED, random.randrange(2**50, 2**53), f"{message_id}", [message_id]))
    said = random.choice(({"result": UNSOLICITED}, {"error": UNSOLICITED}, {"result": [UNSOLICITED]}))
    return Frame(msgspec.json.encode({"jsonrpc": "2.0", **said, "id": wanted}))


def _binary(random: Random) -> Frame:
    return Frame(random.randbytes(random.randrange(64)), is_text=False)


def nonsense(random: Random, message_id: object) -> bytes:
    """Make a reply with the right id and a result that no method gives."""
    said = {"jsonrpc": "2.0", "result": random.choice(_NONSENSE), "id": message_id}
    return msgspec.json.encode(said)


def padded(reply: bytes, size: int) -> bytes:
    """Make a reply longer by a field of so many bytes that says nothing."""
    if not reply.endswith(b"}"):
        return reply
    return reply[:-1] + b',"padding":"' + b"x" * size + b'"}'
