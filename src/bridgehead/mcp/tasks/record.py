"""Record: the stored form of a task, and the form that clients see. Values only.

A record holds all that another process needs to answer for a task: its owner, its status, and its encoded
result.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Raw, Struct
from msgspec.structs import replace

from .. import jsonrpc
from ..errors import INTERNAL_ERROR, INVALID_PARAMS, OVERLOADED, ProtocolError, quote
from ..limits import Limits

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})
_PAYLOAD_NAMES: dict[Status, str] = {
    "input_required": "inputRequests",
    "completed": "result",
    "failed": "error",
}

INTERRUPTED = "The server ended before the task was done. Call the tool again."
"""The status message of a task whose process is gone."""


class TaskRecord(Struct, frozen=True):
    """One task. Times are seconds since 1970."""

    id: str
    owner: str
    """The view, principal and token that created it; only their requests see it."""
    caller: str
    """The caller whose limits it counts against: a principal, or an address without authentication."""
    created: float
    updated: float
    seconds: float
    """Its time to live, from its creation."""
    status: Status = "working"
    message: str = ""
    payload: bytes = b""
    """JSON of the questions, the result or the error, by status."""

    @property
    def expires(self) -> float:
        """When it is removed."""
        return self.created + self.seconds

    @property
    def has_ended(self) -> bool:
        """Whether its status is final."""
        return self.status in ENDED

    def move(self, status: Status, now: float, message: str, payload: bytes = b"") -> TaskRecord:
        """Return the record in another status."""
        return replace(self, status=status, updated=now, message=message, payload=payload)

    def fail(self, failure: ProtocolError, now: float) -> TaskRecord:
        """Return the record as failed."""
        member: dict[str, Any] = {"code": failure.code, "message": failure.message}
        if failure.data is not None:
            member["data"] = failure.data
        try:
            payload = jsonrpc.encode(member)
        except (TypeError, ValueError):  # `data` or the message is not JSON
            payload = jsonrpc.encode({"code": failure.code, "message": ascii(failure.message)})
        return self.move("failed", now, failure.message, payload)

    def interrupt(self, now: float) -> TaskRecord:
        """Return the record as interrupted: its process is gone."""
        return self.fail(ProtocolError(INTERNAL_ERROR, INTERRUPTED), now)

    def describe(self, poll_seconds: float) -> dict[str, Any]:
        """Return the task as clients see it, with the member that its status requires."""
        described: dict[str, Any] = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _format_time(self.created),
            "lastUpdatedAt": _format_time(self.updated),
            "ttlMs": round(self.seconds * 1000),
            "pollIntervalMs": max(1, round(poll_seconds * 1000)),
        }
        if self.message:
            described["statusMessage"] = self.message
        if self.status in _PAYLOAD_NAMES:
            described[_PAYLOAD_NAMES[self.status]] = Raw(self.payload)
        return described


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unknown_task(task_id: str, *, is_ours: bool) -> ProtocolError:
    """Make the error for an id that is not a task of this caller: unknown, expired, or another caller's.

    If the id is not one of this process, the task may have been lost with the machine that ran it.
    """
    reason = "it does not exist, or it has expired"
    if not is_ours:
        reason = "it does not exist, it has expired, or it was lost with the machine that ran it"
    message = f"Unknown task '{quote(task_id)}': {reason}."
    return ProtocolError(INVALID_PARAMS, message)


class TooManyTasks(ProtocolError):
    """Another task, or the result of one, would exceed a limit."""

    def __init__(self, message: str) -> None:
        super().__init__(OVERLOADED, message)


class Kept(Struct):
    """Stored tasks and their bytes, of one caller or of all."""

    tasks: int = 0
    bytes: int = 0


def check_new_task(limits: Limits, of_caller: Kept, of_all: Kept) -> None:
    """Raise TooManyTasks if there are as many tasks as the limits allow."""
    if of_caller.tasks >= limits.tasks_per_caller:
        raise TooManyTasks(
            f"You have {of_caller.tasks} tasks, which is the limit. Wait until some have expired, "
            "then try again."
        )
    if of_all.tasks >= limits.tasks:
        raise TooManyTasks(f"The server has {of_all.tasks} tasks, which is its limit. Try again later.")


def check_payload(limits: Limits, payload: bytes, of_caller: Kept, of_all: Kept) -> None:
    """Raise TooManyTasks if the result would exceed the limits of stored bytes."""
    if of_caller.bytes + len(payload) > limits.task_bytes_per_caller:
        raise TooManyTasks(
            f"The result of the task has {len(payload)} bytes, and your tasks may keep "
            f"{limits.task_bytes_per_caller} bytes in all. Ask for less, or wait until some have expired."
        )
    if of_all.bytes + len(payload) > limits.task_bytes:
        raise TooManyTasks(
            f"The result of the task has {len(payload)} bytes, and there is no room for it: the server keeps "
            f"{limits.task_bytes} bytes of results. Try again later."
        )
