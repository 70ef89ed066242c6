"""Errors of the bitburner bridge, beside those that every bridge has. Each says what to do next."""

from __future__ import annotations

from bridgehead.runtime.errors import BridgeError, InvalidArgument, StorageError, TimedOut, Unavailable


class NotConnected(Unavailable):
    """No game has dialled in."""

    code = "not_connected"


class Disconnected(Unavailable):
    """The game went away while it was being asked."""

    code = "disconnected"

    def __init__(self, method: str) -> None:
        super().__init__(
            f"Bitburner disconnected while {method} waited for its answer.",
            next_step="Try again; connection_status tells whether the game is back.",
        )


class Unanswered(TimedOut):
    """The game did not answer one exchange in time."""

    def __init__(self, method: str, elapsed: float) -> None:
        super().__init__(
            f"The game did not answer {method} within {elapsed:.2f} s.",
            next_step="Try again. If the game is busy or the answer large, raise RPC_TIMEOUT_MS.",
        )
        self.elapsed = elapsed


class RemoteFailure(BridgeError):
    """The game answered with an error; its text, and its code where it has one, are kept."""

    code = "remote_error"

    def __init__(
        self, method: str, remote_message: str, remote_code: int | str | None = None, *, next_step: str = ""
    ) -> None:
        code = "" if remote_code is None else f" (code {remote_code})"
        said = remote_message.rstrip()
        super().__init__(
            f"The game refused {method}: {said}{code}{'' if said.endswith(('.', '!')) and not code else '.'}",
            next_step=next_step,
        )
        self.method = method
        self.remote_message = remote_message
        self.remote_code = remote_code


class TooOld(RemoteFailure):
    """The connected game does not know this request."""

    code = "unsupported_by_game"


class OddReply(BridgeError):
    """The game answered something that is no answer to what was asked."""

    code = "odd_reply"

    def __init__(self, method: str, problem: str) -> None:
        super().__init__(
            f"The game's answer to {method} cannot be read: {problem}.",
            next_step="Try again; if it stays so, the game's version is not one that this bridge knows.",
        )


class Conflict(BridgeError):
    """The file is not what the caller believed it to be."""

    code = "conflict"


class NotKept(StorageError):
    """The previous content could not be kept, so nothing was changed."""

    code = "backup_failed"


class Declined(BridgeError):
    """The user was asked, and said no."""

    code = "declined"


class RanAway(InvalidArgument):
    """A search pattern took too long."""

    code = "pattern_too_slow"


def noted(error: BridgeError, note: str) -> BridgeError:
    """Add to a failure what it means for what was being done."""
    error.message = f"{error.message} {note}"
    error.args = (f"{error.message} {error.next_step}" if error.next_step else error.message,)
    return error
