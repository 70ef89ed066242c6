"""Rejections: HTTP requests that are not served, and the status and JSON-RPC error that say why."""

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
    """A request that is rejected: the status, and what to tell the client in JSON-RPC words."""

    def __init__(
        self, status: int, message: str, *, code: int = INVALID_REQUEST, headers: HeaderPairs = ()
    ) -> None:
        super().__init__(message)
        self.error = ProtocolError(code, message)
        self.response = Response.json(jsonrpc.error(None, self.error), status, headers)


def status_of(failure: ProtocolError, *, stateless: bool) -> int:
    """Return the HTTP status that goes with a JSON-RPC error."""
    if isinstance(failure, MalformedRequest):
        return 400
    if failure.code == OVERLOADED or stateless:
        return _STATUS.get(failure.code, 200)
    return 200


def reject_busy() -> Rejection:
    """Reject a request because there are too many."""
    failure = overload()
    return Rejection(503, failure.message, code=failure.code, headers=((b"retry-after", b"1"),))


def reject_session() -> Rejection:
    """Reject a new session because there are too many."""
    return Rejection(503, "Too many sessions are open; try again later", headers=((b"retry-after", b"30"),))


def reject_method(message: str, allowed: bytes) -> Rejection:
    """Reject a method that a path does not know."""
    return Rejection(405, message, headers=((b"allow", allowed),))
