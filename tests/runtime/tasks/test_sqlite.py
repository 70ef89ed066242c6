"""Tasks in a file: shared by processes, and read as interrupted when the one that ran them is gone."""

import asyncio
import json
import signal
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.features.tools import TASKS_EXTENSION
from bridgehead.mcp.tasks.manager import Tasks
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.tasks.sqlite import FILE, SqliteTaskStore
from tests.support.posix import KILL
from tests.support.task_client import join
from tests.support.task_worker import make_bridge
from tests.support.waiting import PATIENCE

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS_EXTENSION: {}}},
}


@pytest.mark.parametrize("number", [KILL, signal.SIGTERM])
async def test_a_task_whose_process_was_ended_reads_as_failed_with_the_reason(
    tmp_path: Path, number: signal.Signals
) -> None:
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.task_worker", str(tmp_path), stdin=-1, stdout=-1
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    call = {"name": "work", "arguments": {}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    worker.stdin.write(json.dumps(message).encode() + b"\n")
    answer = json.loads(await asyncio.wait_for(worker.stdout.readline(), PATIENCE))
    task_id = answer["result"]["taskId"]
    tasks = Tasks(Limits(), lambda: SqliteTaskStore(lambda: tmp_path))
    client = join(Dispatcher(make_bridge(tmp_path), tasks=tasks))
    working = await client.get(task_id)
    worker.send_signal(number)
    await worker.wait()
    failed = await client.get(task_id)
    await tasks.stop()

    assert (working["status"], failed["status"]) == ("working", "failed")
    assert failed["error"]["message"] == failed["statusMessage"] == INTERRUPTED


async def test_a_process_that_ended_leaves_no_sign_of_life(tmp_path: Path) -> None:
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits())
    await store.create(TaskRecord("id", "owner", "caller", 0.0, 0.0, 1e12))
    running = list((tmp_path / "tasks.running").iterdir())
    await store.close()

    assert len(running) == 1
    assert list((tmp_path / "tasks.running").iterdir()) == []


async def test_the_file_is_private(tmp_path: Path) -> None:
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits())
    await store.close()

    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


async def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match="newer version"):
        await SqliteTaskStore(lambda: tmp_path).open(Limits())


async def test_what_a_process_knows_of_the_end_is_stored_when_it_ends(tmp_path: Path) -> None:
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits())
    ended, running = (TaskRecord(name, "owner", "caller", 0.0, 0.0, 1e12) for name in ("ended", "running"))
    for record in (ended, running):
        await store.create(record)
    await store.close([ended.move("completed", 1.0, "", b"{}")])
    after = SqliteTaskStore(lambda: tmp_path)
    await after.open(Limits())
    found = [await after.read(name) for name in ("ended", "running")]
    await after.close()

    assert [record and (record.status, record.message) for record in found] == [
        ("completed", ""),
        ("failed", INTERRUPTED),
    ]
