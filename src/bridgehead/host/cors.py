"""CORS: what lets a web page of an allowed origin call the host, and read what it answers.

Which origins are allowed is the engine's guard's to know; here are the words in which a browser is told.
"""

from __future__ import annotations

import re

from bridgehead.mcp.http.exchange import HeaderPairs, Whole

_HEADER_NAMES = re.compile(rb"[A-Za-z0-9-]{1,64}(\s*,\s*[A-Za-z0-9-]{1,64}){0,63}")
_EXPOSED = b"mcp-session-id, mcp-protocol-version, x-request-id, www-authenticate, retry-after"


def readable_by(origin: bytes) -> HeaderPairs:
    """Give the headers that let a page of an allowed origin read an answer."""
    return (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    )


def is_preflight(method: str, headers: dict[bytes, bytes]) -> bool:
    """Tell whether a browser asks beforehand whether it may."""
    return method == "OPTIONS" and b"origin" in headers and b"access-control-request-method" in headers


def preflight(headers: dict[bytes, bytes]) -> Whole:
    """Answer a browser that asks for an allowed origin."""
    asked = headers.get(b"access-control-request-headers", b"")
    allowed = asked if _HEADER_NAMES.fullmatch(asked) else b"authorization, content-type"
    return Whole(
        204,
        b"",
        (
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", allowed),
            (b"access-control-max-age", b"600"),
        ),
    )
