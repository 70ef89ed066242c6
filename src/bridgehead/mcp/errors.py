"""Errors: the codes of the protocol, and the dialect in which a bridge words its failures.

The engine knows two kinds of failure. A *protocol error* is a JSON-RPC error; a *tool error* is a result with
`isError`, which the model reads and can act on. Which of the two a bridge's own exceptions become, and how
they are worded, is the bridge's `Dialect`; swap it by passing another one to `Bridge`.
"""

from __future__ import annotations

from typing import Any

from .revisions import Revision

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


MAX_QUOTED = 200
"""Characters of a client's text that a message quotes."""


class ProtocolError(Exception):
    """Becomes the `error` member of a JSON-RPC answer, exactly as given."""

    refused_tool: str | None = None
    """The name of the tool, if the call was of one that does not exist or is not offered."""
    hidden_by: str = ""
    """A sentence that says what hides that tool; empty if it does not exist."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class DeclarationError(ValueError):
    """A declaration that cannot work. The message names the part and what is expected, for its author."""


def missing_capability(what: str, required: dict[str, Any]) -> ProtocolError:
    """Make the error for a missing capability; `required` has the shape in which it is declared."""
    message = f"This needs a client with the '{what}' capability, and yours has not declared it."
    return ProtocolError(MISSING_CAPABILITY, message, {"requiredCapabilities": required})


def quote(words: str) -> str:
    """Return a client's text for use in a message: on one line, shortened."""
    shown = words if len(words) <= MAX_QUOTED else f"{words[:MAX_QUOTED]}…"
    return shown if shown.isprintable() else repr(shown)[1:-1]


class MalformedRequest(ProtocolError):
    """The request itself is broken (not just its arguments); HTTP answers it with status 400."""


class ToolError(Exception):
    """Becomes a tool result with `isError`; the message is for the model and should say what to do next."""

    def __init__(self, message: str, structured: Any = None, *, note: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.structured = structured
        self.note = note
        """Follows the message, as a text block of its own."""


Failure = ProtocolError | ToolError


class Dialect:
    """How a bridge's failures look. The default tells the model everything that it can act on."""

    def for_revision(self, revision: Revision) -> Dialect:
        """Return the dialect for clients of a revision; a contract may pin how failures look in one."""
        return self

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Word arguments that do not fit the tool's input."""
        return ToolError(f"Invalid arguments for {tool}: {problem}")

    def translate(self, error: Exception) -> Failure | None:
        """Turn a handler's exception into a failure; None means it is a bug and its text stays here."""
        return error if isinstance(error, ProtocolError | ToolError) else None

    def bug(self, reference: str) -> Failure:
        """Word an unexpected error; `reference` is also in the log, beside the traceback.

        It contains nothing of the exception, which may hold secrets.
        """
        return ToolError(f"Internal error (reference {reference}). The server's log has the details.")


def forget_frames(error: BaseException | None) -> None:
    """Drop the tracebacks of a failure that is answered, and of its causes.

    A frame that refers to the exception, directly or through a future or task group, forms a cycle with its
    traceback, which would keep the arguments of the whole call in memory until the garbage collector runs.
    """
    while error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
