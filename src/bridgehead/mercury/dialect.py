"""Dialect: how the failures of the mercury bridge look on the wire.

One text block with JSON, `{"error": {"type", "message", "code", "retry_after"?, "content"?}}`, and `isError`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json

from bridgehead.mcp import Context, Dialect, ToolError
from bridgehead.mcp.errors import Failure
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError

from .calling import audit
from .calling.call import client_of
from .errors import MercuryError

INVALID_ARGUMENTS = "INVALID_ARGUMENTS"


class ErrorBody(Struct, omit_defaults=True):
    """An error as an agent reads it."""

    type: str
    message: str
    code: str
    retry_after: float | None = None
    """Seconds."""
    content: str | None = None
    """What had come of the answer."""


def body_of(error: BridgeError) -> ErrorBody:
    """Give an error in the words of the contract."""
    if isinstance(error, MercuryError):
        wait = None if error.retry_after is None else round(error.retry_after, 3)
        return ErrorBody(error.type, str(error), error.code, wait, error.content)
    return ErrorBody("api_error", str(error), error.code.upper(), error.retry_after)


def text_of(body: ErrorBody) -> str:
    """Give an error as the text of a result. What the API said is part of it, and might repeat a key."""
    return logs.scrubbed(json.encode({"error": body}).decode())


class MercuryDialect(Dialect):
    """Words failures as the contract has them."""

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Arguments that do not fit the tool's input."""
        message = f"Invalid arguments for {tool}: {problem}. Correct them and call again."
        return ToolError(text_of(ErrorBody("validation_error", message, INVALID_ARGUMENTS)))

    def refused(self, tool: str, context: Context[Any]) -> None:
        """Write down who called in vain."""
        audit.brief(tool, client_of(context), INVALID_ARGUMENTS)

    def translate(self, error: Exception) -> Failure | None:
        """Turn what a handler raised into a failure; None is a bug."""
        if isinstance(error, BridgeError):
            return ToolError(text_of(body_of(error)))
        return super().translate(error)

    def bug(self, reference: str) -> Failure:
        """Word an unexpected error, whose details are only in the log."""
        message = f"Something is wrong with this server (reference {reference}); its log has the details."
        return ToolError(text_of(ErrorBody("api_error", message, "INTERNAL_ERROR")))
