"""Task records: how a task looks to clients in each of its states."""

from typing import Any

import msgspec
import pytest

from bridgehead.mcp import ProtocolError
from bridgehead.mcp.errors import MAX_QUOTED
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord, unknown_task

NEW = TaskRecord("id", "view\nann", "ann", 1_790_000_000.25, 1_790_000_000.25, 60.0)


def seen(record: TaskRecord) -> dict[str, Any]:
    described: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record.describe(0.5)))
    return described


def test_a_new_task_is_working_and_tells_its_times_in_milliseconds() -> None:
    assert seen(NEW) == {
        "taskId": "id",
        "status": "working",
        "createdAt": "2026-09-21T14:13:20.250Z",
        "lastUpdatedAt": "2026-09-21T14:13:20.250Z",
        "ttlMs": 60_000,
        "pollIntervalMs": 500,
    }


@pytest.mark.parametrize(
    ("status", "member"), [("input_required", "inputRequests"), ("completed", "result"), ("failed", "error")]
)
def test_a_state_brings_what_belongs_to_it(status: Any, member: str) -> None:
    moved = seen(NEW.move(status, 1_790_000_001.0, "Note", b'{"a":1}'))

    assert moved[member] == {"a": 1}
    assert (moved["status"], moved["statusMessage"]) == (status, "Note")
    assert moved["lastUpdatedAt"] == "2026-09-21T14:13:21.000Z"


def test_a_failed_task_says_what_failed() -> None:
    failed = NEW.fail(ProtocolError(-32000, "No", {"why": "because"}), 1_790_000_001.0)

    assert seen(failed)["error"] == {"code": -32000, "message": "No", "data": {"why": "because"}}
    assert seen(failed)["statusMessage"] == "No"
    assert failed.has_ended


def test_what_cannot_be_said_in_json_is_left_out_of_a_failure() -> None:
    failed = NEW.fail(ProtocolError(-32000, "No \ud800", {"why": object()}), 1_790_000_001.0)

    assert msgspec.json.decode(failed.payload) == {"code": -32000, "message": "'No \\ud800'"}


def test_an_unknown_id_is_repeated_only_as_far_as_it_helps() -> None:
    assert "'short'" in unknown_task("short", is_ours=True).message
    assert len(unknown_task("x" * 1_000_000, is_ours=True).message) < 2 * MAX_QUOTED


def test_an_interrupted_task_has_failed_with_the_reason() -> None:
    error = seen(NEW.interrupt(1_790_000_001.0))["error"]

    assert (error["code"], error["message"]) == (-32603, INTERRUPTED)
