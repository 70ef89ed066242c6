"""Guard: checks before a request is handled.

Host and Origin (against DNS rebinding), Accept and Content-Type, the size and duration of the body, and how
much the caller has open. One caller cannot use up what is there for all: sessions, streams and requests are
counted by caller (`Request.caller`) over everything that one host serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from ..errors import OVERLOADED
from ..limits import Limits
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
        without_port = name if colon and port.isdigit() else host  # "[::1]" ends in no port
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


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read the rest of a body, within `message_bytes` and `body_seconds`."""
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            while piece := await request.read():
                body += piece
                if len(body) > limits.message_bytes:
                    raise _too_large(limits)
    except TimeoutError:
        raise Rejection(408, f"The body did not arrive within {limits.body_seconds:g} s") from None
    return bytes(body)


def _too_large(limits: Limits) -> Rejection:
    return Rejection(413, f"A message may have {limits.message_bytes} bytes")


class Share:
    """How many sessions, streams or requests each caller has open."""

    def __init__(self, name: str, limit: int, retry_seconds: float) -> None:
        self._name = name
        self.limit = limit
        self._retry_seconds = retry_seconds
        # A plain dict: it is read for every request, and a Counter handles missing keys in Python code.
        self.by_caller: dict[str, int] = {}
        """Callers with something open, and how much."""

    @property
    def total(self) -> int:
        """How much is open, over all callers."""
        return sum(self.by_caller.values())

    def check(self, caller: str) -> None:
        """Reject a caller that has reached the limit."""
        if self.by_caller.get(caller, 0) >= self.limit:
            headers = ((b"retry-after", b"%d" % ceil(self._retry_seconds)),)
            message = f"You have {self.limit} {self._name} open, which is the limit. End one, then try again."
            raise Rejection(429, message, code=OVERLOADED, headers=headers)

    def take(self, caller: str) -> None:
        """Count one more."""
        self.by_caller[caller] = self.by_caller.get(caller, 0) + 1

    def give_back(self, caller: str) -> None:
        """Count one less; a caller with nothing open is removed, so that the dict stays small."""
        left = self.by_caller[caller] - 1
        if left:
            self.by_caller[caller] = left
        else:
            del self.by_caller[caller]


class Callers:
    """The shares of all callers."""

    def __init__(self, limits: Limits) -> None:
        self.sessions = Share("sessions", limits.sessions_per_caller, 30)
        self.streams = Share("streams", limits.streams_per_caller, 5)
        self.requests = Share("requests", limits.http_requests_per_caller, 1)
