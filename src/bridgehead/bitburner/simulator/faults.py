"""Faults: how a simulated game misbehaves, and how often, by a seeded random draw."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
from msgspec import Struct, field

from bridgehead.runtime.errors import InvalidArgument

DELAY = 0.2
HELD = 0.02
MEGABYTE = 1_000_000

SHARES = ("silence", "late", "out_of_order", "drop", "garbage", "nonsense", "huge")


class Faults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fault rates. Each share is the part of the requests that it affects, from 0 (none) to 1 (all)."""

    silence: float = 0.0
    """No reply."""
    late: float = 0.0
    """The reply is sent `delay` seconds late."""
    out_of_order: float = 0.0
    """The reply is held back and sent shuffled with later ones."""
    drop: float = 0.0
    """The connection is cut at the request, which is not carried out."""
    garbage: float = 0.0
    """An unsolicited or malformed frame is sent before the reply."""
    nonsense: float = 0.0
    """The reply has the right id, and a result of a type that no method returns."""
    huge: float = 0.0
    """The reply is padded by `padding` bytes."""
    delay: float = DELAY
    padding: int = MEGABYTE
    only: frozenset[str] = field(default_factory=frozenset)
    """The methods that are affected; empty means all."""
    times: int | None = None
    """How many requests are affected before the faults end; None: no limit."""

    def __post_init__(self) -> None:
        for name in SHARES:
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InvalidArgument(f"The share of {name} is {share}: expected a number from 0 to 1.")


def parse(text: str) -> Faults:
    """Read faults from a text such as `late=0.3,delay=1,drop=0.05,silence`; without a value, a share is 1."""
    values: dict[str, str] = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        name, _, value = part.partition("=")
        values[name] = value or ("1" if name in SHARES else "")
    try:
        return msgspec.convert({**values}, Faults, strict=False)
    except msgspec.ValidationError as failure:
        known = ", ".join((*SHARES, "delay", "padding", "times"))
        raise InvalidArgument(
            f"The faults {text!r} cannot be read: {failure}.",
            next_step=f"Use a list such as late=0.3,delay=1,drop=0.05. Available: {known}.",
        ) from failure


class Dice:
    """Draws the faults of each request; repeatable for the same seed and requests."""

    def __init__(self, faults: Faults, seed: int = 0) -> None:
        self.random = Random(seed)  # noqa: S311 - chance that can be repeated is the point
        self._left: int | None = None
        self.faults = faults

    @property
    def faults(self) -> Faults:
        """The fault rates; setting them restarts the count of `times`."""
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._faults = faults
        self._left = faults.times

    def draw(self, method: str) -> frozenset[str]:
        """Return the names of the faults of a request."""
        faults = self._faults
        if self._left == 0 or (faults.only and method not in faults.only):
            return frozenset()
        drawn = frozenset(name for name in SHARES if self.random.random() < getattr(faults, name))
        if drawn and self._left is not None:
            self._left -= 1
        return drawn


UNSOLICITED = "never-asked"

_MALFORMED = (b"{", b'{"jsonrpc": "2.0", "id": 1, "resu', b"", b"\xef\xbb\xbf{}", b"<html></html>", b"NaN")
_NO_OBJECT = (b'"[object Object]"', b"[]", b"null", b"true", b"0", b'[{"id": 1, "result": "OK"}]')
_NO_REPLY = (b"{}", b'{"jsonrpc":"2.0"}', b'{"id":null,"result":"OK"}', b'{"jsonrpc":"2.0","result":"OK"}')
_NONSENSE = (None, True, {"not": "this"}, [1, [2]])


class Frame(msgspec.Struct, frozen=True):
    """A frame to send, text or binary."""

    content: bytes
    is_text: bool = True


def garbage(random: Random, message_id: object, stale: Sequence[bytes]) -> Frame:
    """Draw one invalid or unsolicited frame; `stale` are earlier replies to repeat."""
    match random.randrange(4):
        case 0:
            return Frame(random.choice(random.choice((_MALFORMED, _NO_OBJECT, _NO_REPLY))))
        case 1:
            # A whole reply to another request: its id is far off, or almost the right one.
            wrong_id = random.choice(
                (UNSOLICITED, random.randrange(2**50, 2**53), f"{message_id}", [message_id])
            )
            content = random.choice(
                ({"result": UNSOLICITED}, {"error": UNSOLICITED}, {"result": [UNSOLICITED]})
            )
            return Frame(msgspec.json.encode({"jsonrpc": "2.0", **content, "id": wrong_id}))
        case 2 if stale:
            return Frame(random.choice(stale))
        case _:
            return Frame(random.randbytes(random.randrange(64)), is_text=False)


def nonsense(random: Random, message_id: object) -> bytes:
    """Make a reply with the right id and a result that no method returns."""
    reply = {"jsonrpc": "2.0", "result": random.choice(_NONSENSE), "id": message_id}
    return msgspec.json.encode(reply)


def padded(reply: bytes, size: int) -> bytes:
    """Add a meaningless field of `size` bytes to a reply."""
    if not reply.endswith(b"}"):
        return reply
    return reply[:-1] + b',"padding":"' + b"x" * size + b'"}'
