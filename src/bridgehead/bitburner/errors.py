"""Errors of the bitburner bridge, in addition to the runtime's. Each has a next step."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from bridgehead.mcp import Dialect, Failure, ToolError
from bridgehead.runtime.callers import word_error
from bridgehead.runtime.errors import BridgeError, InvalidArgument, StorageError, TimedOut, Unavailable

NOTHING_CHANGED = "Nothing was changed."
"""Added to the error of a change that certainly did nothing."""


class NotConnected(Unavailable):
    """No game has dialled in."""

    code = "not_connected"


class Disconnected(Unavailable):
    """The game disconnected before it answered."""

    code = "disconnected"

    def __init__(self, method: str, cause: str = "") -> None:
        super().__init__(
            f"Bitburner disconnected while {method} waited for its answer{f': {cause}' if cause else ''}.",
            next_step="Try again; connection_status tells whether the game is back.",
        )


class ReplyTimeout(TimedOut):
    """The game did not answer one exchange in time."""

    def __init__(self, method: str, elapsed: float) -> None:
        super().__init__(
            f"The game did not answer {method} within {elapsed:.2f} s.",
            next_step="Try again. If the game is busy or the answer large, raise RPC_TIMEOUT_MS.",
        )
        self.elapsed = elapsed


class ReplyTooLarge(BridgeError):
    """The game's answer exceeds `sockets.MAX_FRAME_BYTES`."""

    code = "reply_too_large"

    def __init__(self, method: str, size: int, limit: int) -> None:
        super().__init__(
            f"The game's answer to {method} has {size:,} bytes; at most {limit:,} are accepted.",
            next_step="Ask for less, such as single files. The game is still connected.",
        )


class RemoteFailure(BridgeError):
    """The game answered with an error; keeps its text and code."""

    code = "remote_error"

    def __init__(
        self, method: str, remote_message: str, remote_code: int | str | None = None, *, next_step: str = ""
    ) -> None:
        code = "" if remote_code is None else f" (code {remote_code})"
        text = remote_message.rstrip()
        super().__init__(
            f"The game refused {method}: {text}{code}{'' if text.endswith(('.', '!')) and not code else '.'}",
            next_step=next_step,
        )
        self.method = method
        self.remote_message = remote_message
        self.remote_code = remote_code


class MissingFile(RemoteFailure):
    """The game has no such file."""

    code = "not_found"


class UnsupportedByGame(RemoteFailure):
    """The connected game does not know this request."""

    code = "unsupported_by_game"


class InvalidReply(BridgeError):
    """The game's answer does not have the expected type."""

    code = "odd_reply"

    def __init__(self, method: str, problem: str) -> None:
        super().__init__(
            f"The game's answer to {method} cannot be read: {problem}.",
            next_step="Try again; if it stays so, the game's version is not one that this bridge knows.",
        )


class Conflict(BridgeError):
    """The file does not hold what the caller expected."""

    code = "conflict"


class BackupFailed(StorageError):
    """The previous content could not be kept, so the file was not changed."""

    code = "backup_failed"


class Declined(BridgeError):
    """The user was asked and declined."""

    code = "declined"


class NotConfirmed(BridgeError):
    """A question to the user was not answered."""

    code = "not_confirmed"


class PatternTooSlow(InvalidArgument):
    """A search pattern took too long."""

    code = "pattern_too_slow"


def add_note(error: BridgeError, note: str) -> BridgeError:
    """Append a sentence to the message, about the effect of the failure on the operation."""
    # `args` too: `str(error)`, which clients see, is made from it.
    error.message = f"{error.message} {note}"
    error.args = (f"{error.message} {error.next_step}" if error.next_step else error.message,)
    return error


class FailureContent(Struct, frozen=True, omit_defaults=True):
    """Structured form of a failure; the text block says the same to models."""

    code: str
    message: str
    next_step: str
    transient: bool
    remote_message: str | UnsetType = UNSET
    remote_code: int | str | UnsetType | None = UNSET


class BitburnerDialect(Dialect):
    """Maps every failure to a tool error: a model can act on each of them."""

    def invalid_arguments(self, tool: str, problem: str) -> Failure:
        """Report arguments that do not fit the schema."""
        error = InvalidArgument(
            f"Invalid arguments for {tool}: {problem}.", next_step="Correct the arguments and call again."
        )
        return _to_tool_error(error)

    def translate(self, error: Exception) -> Failure | None:
        """Turn a BridgeError into a tool error."""
        return _to_tool_error(error) if isinstance(error, BridgeError) else super().translate(error)


def _to_tool_error(error: BridgeError) -> ToolError:
    shown = word_error(error)
    message = shown.removesuffix(f" {error.next_step}")
    problem = FailureContent(error.code, message, error.next_step, error.is_transient)
    if isinstance(error, RemoteFailure):
        problem = FailureContent(
            error.code,
            error.message,
            error.next_step,
            error.is_transient,
            error.remote_message,
            error.remote_code,
        )
    return ToolError(shown, problem)
