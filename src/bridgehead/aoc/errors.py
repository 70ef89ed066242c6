"""Dialect: how the aoc bridge's failures look. Its contract knows JSON-RPC errors only.

What went wrong with the files is -1; what was asked for wrongly is -32602, and its message begins with
`Invalid params`. No answer of this bridge has `isError`.
"""

from __future__ import annotations

from bridgehead.mcp import INVALID_PARAMS, RESOURCE_NOT_FOUND, Dialect, Failure, ProtocolError
from bridgehead.runtime.errors import BridgeError, InvalidArgument

APPLICATION_ERROR = -1
_INVALID = "Invalid params"
_NOT_LOADED = "Error loading instruction: "


class AocDialect(Dialect):
    """Failures in the words of the aoc contract."""

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Refuse arguments with the code for parameters."""
        return ProtocolError(INVALID_PARAMS, f"{_INVALID} for {tool}: {problem}")

    def translate(self, error: Exception) -> Failure | None:
        """Give each failure its code and prefix."""
        if isinstance(error, InvalidArgument):
            return ProtocolError(INVALID_PARAMS, f"{_INVALID}: {error}")
        if isinstance(error, BridgeError):
            return ProtocolError(APPLICATION_ERROR, str(error))
        if isinstance(error, ProtocolError):
            return _worded(error)
        return None


def _worded(error: ProtocolError) -> ProtocolError:
    """Word what the engine refuses; a missing resource, -32002 in some revisions, is the contract's -1."""
    if error.code == RESOURCE_NOT_FOUND:
        return ProtocolError(APPLICATION_ERROR, _NOT_LOADED + error.message, error.data)
    if error.code == INVALID_PARAMS and not error.message.startswith(_INVALID):
        return ProtocolError(INVALID_PARAMS, f"{_INVALID}: {error.message}", error.data)
    return error


def not_loaded(error: BridgeError) -> ProtocolError:
    """Say that a resource cannot be read, with the prefix that the contract gives this."""
    return ProtocolError(APPLICATION_ERROR, f"{_NOT_LOADED}{error}")
