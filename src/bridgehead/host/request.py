"""Host requests: what the host knows of one HTTP request, and what every response to it carries.

The id by which a request is found in logs, responses and errors alike; the headers that let a web page of an
allowed origin read the response (CORS). Which origins are allowed is the engine's guard's to know.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from contextlib import suppress
from contextvars import ContextVar
from itertools import count
from typing import Any

import msgspec
from msgspec import Struct, field

from bridgehead.mcp.http.message import HeaderPairs, Request, Response

from .auth.grants import Grant

ID_HEADER = b"x-request-id"
_TRACE_ID = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_TOKEN = re.compile(r"bh_[0-9a-f]{6,}_[\w-]{8,}|eyJ[\w-]{8,}(\.[\w-]*){1,2}")
"""What looks like one of our tokens, or like a JWT."""
_GOOD_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,64}")
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9-]{1,64}(\s*,\s*[A-Za-z0-9-]{1,64}){0,63}")
_EXPOSED = b"mcp-session-id, mcp-protocol-version, x-request-id, www-authenticate, retry-after"


class HostRequest:
    """One request: who makes it, under which id, and what becomes of it."""

    __slots__ = (
        "address",
        "grant",
        "headers",
        "http",
        "id",
        "is_revoked",
        "method",
        "path",
        "reason",
        "route",
        "scheme",
        "span",
        "started",
        "task",
        "trace",
    )

    def __init__(self, http: Request, request_id: str, started: float, address: str, scheme: str) -> None:
        self.http = http
        self.headers = http.headers
        self.method = http.method
        self.path = http.path
        self.id = request_id
        self.started = started
        self.address = address
        """Where it comes from, behind the proxies that are trusted."""
        self.scheme = scheme
        self.route = "other"
        """The path as it is counted: one of a few."""
        self.grant: Grant | None = None
        self.reason = ""
        """Why it was rejected, in one word."""
        self.is_revoked = False
        """Whether its caller may no longer be served."""
        self.task: asyncio.Task[Any] | None = None
        self.trace = self.span = ""
        """The ids of its trace and span, where spans are made; `find_trace` finds it elsewhere as well."""
        http.extra_headers = ((ID_HEADER, request_id.encode()),)

    def find_trace(self) -> str:
        """Return the id of the trace that it is a part of; looked for only when a line is logged."""
        if self.trace:
            return self.trace
        body = bytes(self.http.body) if b"traceparent" in self.http.body else b""
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            told = _decode_traced(body).params.meta.traceparent.encode() if body else b""
            found = _TRACE_ID.fullmatch(told)
            if found:
                return found.group(1).decode()
        return read_trace_id(self.headers)

    def allow_origin(self) -> None:
        """Let the page that makes the request read its response; it is known that it may."""
        origin = self.headers.get(b"origin")
        if origin is not None:
            self.http.extra_headers = (*self.http.extra_headers, *_readable_by(origin))

    def revoke(self) -> None:
        """Stop serving it: its caller's token has been revoked or has expired."""
        if self.task is not None and not self.is_revoked:
            self.is_revoked = True
            self.task.cancel()


current_request: ContextVar[HostRequest | None] = ContextVar("request", default=None)
"""The request that is being served, for whatever is logged meanwhile."""


class _Meta(Struct):
    traceparent: str = ""


class _Params(Struct):
    meta: _Meta = field(default_factory=_Meta, name="_meta")


class _Traced(Struct):
    """The part of a message that says which trace it is in."""

    params: _Params = field(default_factory=_Params)


_decode_traced = msgspec.json.Decoder(_Traced).decode


# --- ids ------------------------------------------------------------------------------------------------


class RequestIds:
    """Takes the id that a client or proxy gave, or makes one that no other process makes."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._numbers = count(1)

    def find(self, headers: dict[bytes, bytes]) -> str:
        """Return the id of a request. What could not be told from something else in a log is not taken."""
        given = headers.get(ID_HEADER)
        if given is not None and _GOOD_ID.fullmatch(given) and not _TOKEN.search(given.decode()):
            return given.decode()
        return f"{self._process}-{next(self._numbers):x}"


def read_trace_id(headers: dict[bytes, bytes]) -> str:
    """Return the id of the trace that a request's headers name; nothing where they name none."""
    found = _TRACE_ID.fullmatch(headers.get(b"traceparent", b""))
    return found.group(1).decode() if found else ""


def hide_tokens(text: str) -> str:
    """Write a text for a log: a token that somebody put where it does not belong is not in it."""
    return _TOKEN.sub("(token)", text)


def log_fields() -> dict[str, object]:
    """Give the fields that a line about the current request has."""
    request = current_request.get()
    if request is None:
        return {}
    return {"request": request.id} | trace_fields(request)


def trace_fields(request: HostRequest) -> dict[str, object]:
    """Give what a line says of the trace that a request is in."""
    trace = request.find_trace()
    found: dict[str, object] = {"trace": trace} if trace else {}
    return found | {"span": request.span} if request.span else found


# --- CORS -----------------------------------------------------------------------------------------------


def _readable_by(origin: bytes) -> HeaderPairs:
    return (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    )


def is_preflight(request: HostRequest) -> bool:
    """Tell whether a browser asks beforehand whether it may."""
    headers = request.headers
    return (
        request.method == "OPTIONS" and b"origin" in headers and b"access-control-request-method" in headers
    )


def answer_preflight(request: HostRequest) -> Response:
    """Answer a browser that asks for an allowed origin."""
    asked = request.headers.get(b"access-control-request-headers", b"")
    allowed = asked if _HEADER_NAMES.fullmatch(asked) else b"authorization, content-type"
    return Response(
        204,
        b"",
        (
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", allowed),
            (b"access-control-max-age", b"600"),
        ),
    )
