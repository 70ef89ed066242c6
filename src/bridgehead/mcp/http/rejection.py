"""Rejections: HTTP requests that are refused, each with a status and a JSON-RPC error."""

from __future__ import annotations

from .. import jsonrpc
from ..connection import overload
from ..errors import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    OVERLOADED,
    UNSUPPORTED_VERSION,
    MalformedRequest,
    ProtocolError,
)
from .message import HeaderPairs, Response

_STATUS = {
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    OVERLOADED: 503,
}


class Rejection(Exception):
    """A refused request: the HTTP status, and the JSON-RPC error in its body."""

    def __init__(
        self, status: int, message: str, *, code: int = INVALID_REQUEST, headers: HeaderPairs = ()
    ) -> None:
        super().__init__(message)
        self.error = ProtocolError(code, message)
        self.response = Response.json(jsonrpc.error(None, self.error), status, headers)


def status_of(failure: ProtocolError, *, stateless: bool) -> int:
    """Return the HTTP status of a JSON-RPC error; in the handshake era nearly all errors come with 200."""
    if isinstance(failure, MalformedRequest):
        return 400
    if failure.code == OVERLOADED or stateless:
        return _STATUS.get(failure.code, 200)
    return 200


def reject_busy() -> Rejection:
    """Make the rejection for too many requests in flight."""
    failure = overload()
    return Rejection(503, failure.message, code=failure.code, headers=((b"retry-after", b"1"),))


def reject_session() -> Rejection:
    """Make the rejection for too many sessions."""
    return Rejection(503, "Too many sessions are open; try again later", headers=((b"retry-after", b"30"),))


def reject_method(message: str, allowed: bytes) -> Rejection:
    """Make the rejection for an HTTP method that a path does not have."""
    return Rejection(405, message, headers=((b"allow", allowed),))
