"""Caller: who sent a request over HTTP, as a tool may know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_SECRET = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
"""Headers that carry credentials: a server must not pass them on."""


class Caller(Struct, frozen=True):
    """Who sent a request. An `authenticate` function may return one, with what the token says."""

    name: str | None
    """None if the server lets everybody call."""
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    """The headers of the request by lower-case name, without credentials."""


def without_credentials(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return the headers that a tool may see."""
    texts = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
    return {name: value for name, value in texts.items() if name not in _SECRET}
