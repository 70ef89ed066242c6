"""Dialect: how a bridge's failures look on the wire.

The engine knows two kinds of failure. A *protocol error* is a JSON-RPC error; a *tool error* is a result with
`isError`, which the model reads and can act on. Which of the two a bridge's own exceptions become, and how
they are worded, is the bridge's `Dialect`; swap it by passing another one to `Bridge`.
"""

from __future__ import annotations

from typing import Any

from ..errors import INTERNAL_ERROR, Failure, ProtocolError, ToolError
from ..revisions import Revision


class Dialect:
    """How a bridge's failures look. The default tells the model everything that it can act on."""

    def for_revision(self, revision: Revision) -> Dialect:
        """Return the dialect for clients of a revision; a contract may pin how failures look in one."""
        return self

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Word arguments that do not fit the tool's input."""
        return ToolError(f"Invalid arguments for {tool}: {problem}")

    def refused(self, tool: str, context: Any) -> None:
        """Hear of a call whose arguments did not fit, and which its handler never sees."""

    def translate(self, error: Exception) -> Failure | None:
        """Turn a handler's exception into a failure; None means it is a bug and its text stays here."""
        return error if isinstance(error, ProtocolError | ToolError) else None

    def bug(self, reference: str) -> Failure:
        """Word an unexpected error; `reference` is also in the log, beside the traceback."""
        return ProtocolError(
            INTERNAL_ERROR, f"Internal error (reference {reference}). The server's log has the details."
        )
