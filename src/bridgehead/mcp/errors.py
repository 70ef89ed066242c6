"""Errors: what can go wrong on the wire, and the codes for it. A bridge's `Dialect` words its failures."""

from __future__ import annotations

from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
OVERLOADED = -32000
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


class ProtocolError(Exception):
    """Becomes the `error` member of a JSON-RPC answer, exactly as given."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class MalformedRequest(ProtocolError):
    """The request itself is broken (not just its arguments); HTTP answers it with status 400."""


class ToolError(Exception):
    """Becomes a tool result with `isError`; the message is for the model and should say what to do next."""

    def __init__(self, message: str, structured: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.structured = structured


Failure = ProtocolError | ToolError
