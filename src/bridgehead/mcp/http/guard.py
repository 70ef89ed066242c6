"""Guard: who may talk to the endpoint at all. Host and Origin (DNS rebinding), Accept and Content-Type."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from .exchange import Refused

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MOST_REMEMBERED = 256


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
        """Refuse a request that a page of some other site could have caused."""
        pair = (headers.get(b"host"), headers.get(b"origin"))
        if pair in self._passed:
            return
        host, origin = pair
        if host is None or not self._is_allowed_host(host.decode("latin-1")):
            raise Refused(421, f"Host {(host or b'').decode('latin-1')!r} is not one this server answers for")
        if origin is not None and not self._is_allowed_origin(origin.decode("latin-1")):
            raise Refused(403, f"Origin {origin.decode('latin-1')!r} is not allowed")
        if len(self._passed) < _MOST_REMEMBERED:
            self._passed.add(pair)

    def _is_allowed_host(self, host: str) -> bool:
        host = host.lower()
        return "*" in self._hosts or host in self._hosts or _without_port(host) in self._hosts

    def _is_allowed_origin(self, origin: str) -> bool:
        origin = origin.lower().rstrip("/")
        if "*" in self._origins or origin in self._origins:
            return True
        _, found, host = origin.partition("://")
        return bool(found) and "*" not in self._hosts and self._is_allowed_host(host)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


class Accepted(NamedTuple):
    """What a client accepts of the two kinds of answer, and which it would rather have."""

    json: bool
    events: bool
    prefers_events: bool


@lru_cache(maxsize=256)
def accepted(accept: bytes | None) -> Accepted:
    """Read an Accept header. None accepts everything; of two that weigh alike, the first is preferred."""
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
    """Refuse a body that is not declared as JSON, and a client that cannot read both kinds of answer."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json" and kind.split(b";")[0].strip().lower() != b"application/json":
        raise Refused(415, "Content-Type must be application/json")
    answers = accepted(headers.get(b"accept"))
    if not (answers.json and answers.events):
        raise Refused(406, "Accept must list application/json and text/event-stream")
    return answers
