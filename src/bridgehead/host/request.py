"""Host requests: one HTTP request with its id, caller and trace, and its CORS headers.

The id is the same in logs, responses and errors. The CORS headers let a web page of an allowed origin read
the response; the engine's guard decides which origins are allowed.
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

from bridgehead.mcp.http.message import Request, Response

from .auth.grants import Grant

ID_HEADER = b"x-request-id"
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
"""W3C trace context: version, trace id, span id, flags."""
_TOKEN = re.compile(r"bh_[0-9a-f]{6,}_[\w-]{8,}|eyJ[\w-]{8,}(\.[\w-]*){1,2}")
"""Matches one of our tokens, or a JWT (`eyJ` is base64 of `{"`)."""
_VALID_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,64}")
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9-]{1,64}(\s*,\s*[A-Za-z0-9-]{1,64}){0,63}")
_EXPOSED = b"mcp-session-id, mcp-protocol-version, x-request-id, www-authenticate, retry-after"


class HostRequest:
    """One request: its id, its caller, and the state of its response."""

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
        """The client's address; behind trusted proxies, the one that they forward."""
        self.scheme = scheme
        self.route = "other"
        """The route's name in metrics: one of a few, never a path that a client chose."""
        self.grant: Grant | None = None
        self.reason = ""
        """Why it was rejected, in one word."""
        self.is_revoked = False
        """Whether the caller's token has ended while the request was being answered."""
        self.task: asyncio.Task[Any] | None = None
        self.trace = self.span = ""
        """Ids of its trace and span, set by the tracer; `find_trace` also works without one."""
        http.extra_headers = ((ID_HEADER, request_id.encode()),)

    def find_trace(self) -> str:
        """Return the id of the client's trace, or nothing. Parses the body, so call it only to log a line."""
        if self.trace:
            return self.trace
        # `_meta` wins over the headers, as in the tracer. A body without the word is not decoded.
        body = bytes(self.http.body) if b"traceparent" in self.http.body else b""
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            traceparent = _decode_traced(body).params.meta.traceparent.encode() if body else b""
            match = _TRACEPARENT.fullmatch(traceparent)
            if match:
                return match.group(1).decode()
        return read_trace_id(self.headers)

    def allow_origin(self) -> None:
        """Let the web page that sent the request read its response; the guard has accepted its origin."""
        self.http.extra_headers = (
            *self.http.extra_headers,
            (b"access-control-allow-origin", self.headers[b"origin"]),
            (b"access-control-expose-headers", _EXPOSED),
            # The header names one origin, so a cache must not give the response to another.
            (b"vary", b"origin"),
        )

    def revoke(self) -> None:
        """Cut off the response, because the caller's token was revoked or has expired."""
        if self.task is not None and not self.is_revoked:
            self.is_revoked = True
            self.task.cancel()


current_request: ContextVar[HostRequest | None] = ContextVar("request", default=None)
"""The request in progress; log lines written meanwhile carry its id."""


class _Meta(Struct):
    traceparent: str = ""


class _Params(Struct):
    meta: _Meta = field(default_factory=_Meta, name="_meta")


class _Traced(Struct):
    """The only part of a message that is decoded to find its trace."""

    params: _Params = field(default_factory=_Params)


_decode_traced = msgspec.json.Decoder(_Traced).decode


# --- ids ------------------------------------------------------------------------------------------------


class RequestIds:
    """Uses the id from a client or proxy, or makes one that is unique across processes."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._numbers = count(1)

    def find(self, headers: dict[bytes, bytes]) -> str:
        """Return the id of a request; a client's own one only if it is harmless in a log."""
        sent = headers.get(ID_HEADER)
        # No spaces or line breaks, which could forge a log line, and no token sent by mistake.
        if sent is not None and _VALID_ID.fullmatch(sent) and not _TOKEN.search(sent.decode()):
            return sent.decode()
        return f"{self._process}-{next(self._numbers):x}"


def read_trace_id(headers: dict[bytes, bytes]) -> str:
    """Return the trace id of the `traceparent` header; empty without one."""
    match = _TRACEPARENT.fullmatch(headers.get(b"traceparent", b""))
    return match.group(1).decode() if match else ""


def hide_tokens(text: str) -> str:
    """Mask tokens that a client put into a path or another text that is logged."""
    return _TOKEN.sub("(token)", text)


def log_fields() -> dict[str, object]:
    """Return the fields that every log line about the current request has."""
    request = current_request.get()
    if request is None:
        return {}
    return {"request": request.id} | trace_fields(request)


def trace_fields(request: HostRequest) -> dict[str, object]:
    """Return the log fields of a request's trace."""
    trace = request.find_trace()
    fields: dict[str, object] = {"trace": trace} if trace else {}
    return fields | {"span": request.span} if request.span else fields


# --- CORS -----------------------------------------------------------------------------------------------


def is_preflight(request: HostRequest) -> bool:
    """Tell whether a browser asks for permission before the real request (CORS preflight)."""
    headers = request.headers
    return (
        request.method == "OPTIONS" and b"origin" in headers and b"access-control-request-method" in headers
    )


def answer_preflight(request: HostRequest) -> Response:
    """Permit the request that a page of an allowed origin is about to make."""
    requested = request.headers.get(b"access-control-request-headers", b"")
    # The names are echoed, because clients send headers of their own. Not `*`: it excludes Authorization.
    allowed = requested if _HEADER_NAMES.fullmatch(requested) else b"authorization, content-type"
    return Response(
        204,
        b"",
        (
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", allowed),
            (b"access-control-max-age", b"600"),
        ),
    )
