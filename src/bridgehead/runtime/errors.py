"""Errors: the exceptions for failures outside of a bridge's code.

Every error is written for the agent that reads it: what happened, and what to do next. Each bridge's dialect
decides how it looks on the wire; nothing here knows the protocol.
"""

from __future__ import annotations

import linecache
import os
from types import TracebackType

import bridgehead.mcp


class BridgeError(Exception):
    """A failure with a message and a next step for the agent."""

    code = "error"
    """Identifies the kind of error for programs."""
    is_transient = False
    """Whether a retry can help."""

    def __init__(
        self, message: str, *, next_step: str = "", retry_after: float | None = None, path: str = ""
    ) -> None:
        super().__init__(f"{message} {next_step}" if next_step else message)
        self.message = message
        self.next_step = next_step
        self.retry_after = retry_after
        """Seconds after which a retry makes sense, if known."""
        self.path = path
        """The file or folder that the text names; `callers.word_error` shows its name alone to others."""


def place_of(failure: BaseException) -> str:
    """Return the author's line at which something failed: file, number and text; empty if there is none.

    It is the innermost one outside of the engine: a declaration fails in our code for a line of theirs.
    """
    engine = os.path.dirname(os.path.abspath(bridgehead.mcp.__file__))  # noqa: PTH100, PTH120
    frame: TracebackType | None = failure.__traceback__
    file, line = "", 0
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not name.startswith(("<", engine)):
            file, line = name, frame.tb_lineno
        frame = frame.tb_next
    if isinstance(failure, SyntaxError) and failure.filename:
        file, line = failure.filename, failure.lineno or 0
    text = linecache.getline(file, line).strip()
    shown = f"{os.path.basename(file)}, line {line}"  # noqa: PTH119
    return (f"{shown} ({text})" if text else shown) if file else ""


class InvalidArgument(BridgeError):
    """The arguments of a request are invalid."""

    code = "invalid_argument"


class NotFound(BridgeError):
    """The requested thing does not exist."""

    code = "not_found"


class Unavailable(BridgeError):
    """The far side cannot be reached right now."""

    code = "unavailable"
    is_transient = True


class TimedOut(BridgeError):
    """The far side did not answer in time."""

    code = "timeout"
    is_transient = True


class StorageError(BridgeError):
    """A file of ours cannot be read or written; its content is intact."""

    code = "storage"
