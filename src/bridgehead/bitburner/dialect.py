"""Dialect: how this bridge's failures look on the wire. Each is a tool error that says what to do next."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from bridgehead.mcp.errors import Dialect, Failure, ToolError
from bridgehead.runtime.errors import BridgeError, InvalidArgument
from bridgehead.runtime.metrics import Counter

from .errors import RemoteFailure


class Problem(Struct, frozen=True, omit_defaults=True):
    """A failure for programs; the text beside it is for models and says the same."""

    code: str
    message: str
    next_step: str
    transient: bool
    remote_message: str | UnsetType = UNSET
    remote_code: int | str | UnsetType | None = UNSET


class BitburnerDialect(Dialect):
    """Tool errors throughout: a model can act on each of them."""

    def __init__(self, tool_calls: Counter, tool_errors: Counter) -> None:
        self._tool_calls = tool_calls
        self._tool_errors = tool_errors

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Arguments that do not fit; such a call never reaches the tool, so it is counted here."""
        self._tool_calls.add(tool)
        self._tool_errors.add(tool)
        error = InvalidArgument(
            f"Invalid arguments for {tool}: {problem}.", next_step="Correct the arguments and call again."
        )
        return _worded(error)

    def translate(self, error: Exception) -> Failure | None:
        """Turn a failure of ours into a tool error."""
        return _worded(error) if isinstance(error, BridgeError) else super().translate(error)


def _worded(error: BridgeError) -> ToolError:
    problem = Problem(error.code, error.message, error.next_step, error.is_transient)
    if isinstance(error, RemoteFailure):
        problem = Problem(
            error.code,
            error.message,
            error.next_step,
            error.is_transient,
            error.remote_message,
            error.remote_code,
        )
    return ToolError(str(error), problem)
