"""Errors: what a bridge raises when something outside of its code went wrong.

Every error is written for the agent that reads it: what happened, and what to do next. How it looks on the
wire is decided once for each bridge, in its dialect; nothing here knows the protocol.
"""

from __future__ import annotations


class BridgeError(Exception):
    """Something went wrong, and here is what an agent needs to know about it."""

    code = "error"
    """Identifies the kind of error for programs."""
    is_transient = False
    """Whether trying the same again can help."""

    def __init__(self, message: str, *, next_step: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{message} {next_step}" if next_step else message)
        self.message = message
        self.next_step = next_step
        self.retry_after = retry_after
        """Seconds after which a retry makes sense, if known."""


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
    """A file of ours cannot be read or written; what was in it is still there."""

    code = "storage"
