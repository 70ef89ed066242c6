"""Guard: checks before a request is handled.

Host and Origin (against DNS rebinding), Accept and Content-Type, the size and duration of the body. Limits
per caller are checked by `accounts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from .. import jsonrpc
from ..limits import Limits
from ..shape import TOO_MUCH, Shape
from .accounts import Accounts
from .message import Request
from .rejection import Rejection

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MAX_REMEMBERED = 256
"""Pairs of Host and Origin that are not checked again."""
_MAX_LENGTH_DIGITS = 20


class Guard:
    """Checks the headers that every request must pass.

    `hosts` are names without a port, or with one to allow only that; `origins` are whole origins such as
    `https://app.example`. An origin on an allowed host is allowed too. `*` allows everything.
    """

    def __init__(self, hosts: Iterable[str] = LOOPBACK, origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._passed: set[tuple[bytes | None, bytes | None]] = set()

    def check(self, headers: dict[bytes, bytes]) -> None:
        """Reject a request that a page of another site may have caused."""
        pair = (headers.get(b"host"), headers.get(b"origin"))
        if pair in self._passed:
            return
        host, origin = pair
        if host is None or not self._is_allowed_host(host.decode("latin-1")):
            name = (host or b"").decode("latin-1")
            raise Rejection(421, f"Host {name!r} is not one this server answers for")
        if origin is not None and not self._is_allowed_origin(origin.decode("latin-1")):
            raise Rejection(403, f"Origin {origin.decode('latin-1')!r} is not allowed")
        if len(self._passed) < _MAX_REMEMBERED:
            self._passed.add(pair)

    def _is_allowed_host(self, host: str) -> bool:
        host = host.lower()
        name, colon, port = host.rpartition(":")
        without_port = name if colon and port.isdigit() else host  # "[::1]" has no port
        return "*" in self._hosts or host in self._hosts or without_port in self._hosts

    def _is_allowed_origin(self, origin: str) -> bool:
        origin = origin.lower().rstrip("/")
        if "*" in self._origins or origin in self._origins:
            return True
        _, separator, host = origin.partition("://")
        # `*` for hosts says nothing about origins: behind a proxy any Host is fine, any website is not.
        return bool(separator) and "*" not in self._hosts and self._is_allowed_host(host)


class Accepted(NamedTuple):
    """Which of the two kinds of answer a client accepts, and which it prefers."""

    json: bool
    events: bool
    prefers_events: bool


@lru_cache(maxsize=256)
def accepted(accept: bytes | None) -> Accepted:
    """Parse an Accept header; None accepts everything. With equal weights the first is preferred."""
    weights: dict[bytes, tuple[float, int]] = {}
    for position, part in enumerate((accept or b"*/*").lower().split(b",")):
        kind, *parameters = (piece.strip() for piece in part.split(b";"))
        weights[kind] = (_weight(parameters), -position)
    nothing = (0.0, 0)
    anything = weights.get(b"*/*", nothing)
    json = weights.get(b"application/json", weights.get(b"application/*", anything))
    events = weights.get(b"text/event-stream", weights.get(b"text/*", anything))
    return Accepted(json[0] > 0, events[0] > 0, events > json)


def _weight(parameters: list[bytes]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def check_json(headers: dict[bytes, bytes]) -> Accepted:
    """Reject a body that is not declared as JSON, and a client that cannot read both kinds of answer."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json" and kind.split(b";")[0].strip().lower() != b"application/json":
        raise Rejection(415, "Content-Type must be application/json")
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.lower() != b"identity":
        raise Rejection(415, "Content-Encoding must be identity: bodies are not unpacked here")
    answers = accepted(headers.get(b"accept"))
    if not (answers.json and answers.events):
        raise Rejection(406, "Accept must list application/json and text/event-stream")
    return answers


def is_work(message: jsonrpc.Message | jsonrpc.Batch | jsonrpc.Malformed) -> bool:
    """Whether a message may need a thread: it runs something of a bridge, or is a batch."""
    if isinstance(message, jsonrpc.Message):
        return message.method in {"tools/call", "resources/read", "prompts/get"}
    return isinstance(message, jsonrpc.Batch)


def check_length(headers: dict[bytes, bytes], limits: Limits) -> None:
    """Reject a body whose Content-Length is too large, before reading it."""
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared[:_MAX_LENGTH_DIGITS]) > limits.message_bytes:
        raise _too_large(limits)


def whole_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request that has arrived completely."""
    if len(request.body) > limits.message_bytes:
        raise _too_large(limits)
    return bytes(request.body)


async def read_body(
    request: Request, limits: Limits, accounts: Accounts | None = None
) -> tuple[bytes, Shape]:
    """Read the rest of a body, within `message_bytes` and `body_seconds`, on the caller's account.

    Its shape is counted as it arrives: nobody waits for the count of a large body.
    """
    body, caller, shape = bytearray(), request.caller, Shape()
    try:
        async with asyncio.timeout(limits.body_seconds):
            while piece := await request.read():
                if accounts is not None:
                    accounts.check(caller, len(piece))
                    accounts.charge(caller, len(piece))
                body += piece
                if len(body) > limits.message_bytes:
                    raise _too_large(limits)
                if not shape.add(piece):
                    raise Rejection(400, f"Invalid request: {TOO_MUCH}")
    except TimeoutError:
        raise Rejection(408, f"The body did not arrive within {limits.body_seconds:g} s") from None
    finally:
        if accounts is not None and body:
            accounts.release(caller, len(body))
    return bytes(body), shape


def _too_large(limits: Limits) -> Rejection:
    return Rejection(413, f"A message may have {limits.message_bytes} bytes")
