"""Tasks in a file: shared by processes, and read as interrupted when the one that ran them is gone."""

import asyncio
import json
import signal
import sqlite3
import stat
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.features.tools import TASKS_EXTENSION
from bridgehead.mcp.tasks.manager import Tasks
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.tasks.sqlite import FILE, SqliteTaskStore
from tests.support.clock import Clock
from tests.support.open_files import files_open_in
from tests.support.posix import KILL
from tests.support.task_client import join
from tests.support.task_worker import make_bridge
from tests.support.waiting import PATIENCE, until

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


def task(name: str, seconds: float = 1e12) -> TaskRecord:
    return TaskRecord(name, "owner", "caller", 1000.0, 1000.0, seconds)


async def test_a_store_that_is_closed_holds_no_file_and_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits())
    own = set(threading.enumerate()) - before
    await store.close()

    assert [thread.name for thread in own] == ["bridgehead-tasks_0"]
    assert not files_open_in(tmp_path)
    await until(lambda: not any(thread.is_alive() for thread in own))


async def test_calls_at_once_take_turns_on_one_connection(tmp_path: Path) -> None:
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits())
    names = [str(number) for number in range(10)]
    await asyncio.gather(*(store.create(task(name)) for name in names))
    found = await asyncio.gather(*(store.read(name) for name in names))
    await store.close()

    assert found == [task(name) for name in names]


async def test_only_the_user_can_see_which_processes_run_tasks(tmp_path: Path) -> None:
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits())
    folder = tmp_path / "tasks.running"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]
    await store.close()

    assert modes == [0o700, 0o600]


async def test_a_second_store_leaves_the_tasks_of_the_first_alone_while_it_lives(tmp_path: Path) -> None:
    one, other = (SqliteTaskStore(lambda: tmp_path) for _ in range(2))
    await one.open(Limits())
    await one.create(task("a"))
    await other.open(Limits())
    seen = [await store.read("a") for store in (other, one)]
    await one.close()
    after = await other.read("a")
    await other.close()

    assert seen == [task("a")] * 2
    assert after is not None
    assert (after.status, after.message) == ("failed", INTERRUPTED)


async def test_a_new_task_removes_expired_ones_from_the_file(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    store = SqliteTaskStore(lambda: tmp_path, clock.now)
    await store.open(Limits())
    await store.create(task("old", seconds=60.0))
    clock.advance(60.0)
    await store.create(task("new"))
    await store.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        kept = file.execute("SELECT id FROM tasks").fetchall()
        version = file.execute("PRAGMA user_version").fetchone()

    assert (kept, version) == ([("new",)], (1,))


async def test_what_a_killed_process_left_is_cleared_by_the_next_start_and_what_runs_is_not(
    tmp_path: Path,
) -> None:
    running = SqliteTaskStore(lambda: tmp_path)
    await running.open(Limits())
    for name in ("running", "left"):
        await running.create(task(name))
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("UPDATE tasks SET runner = 'killed' WHERE id = 'left'")
    left = tmp_path / "tasks.running" / "killed.lock"
    left.touch()

    for _ in range(2):  # the second start finds nothing left to do
        after = SqliteTaskStore(lambda: tmp_path)
        await after.open(Limits())
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            kept = connection.execute("SELECT id, status FROM tasks ORDER BY id").fetchall()
        found = [await after.read(name) for name in ("running", "left")]
        await after.close()

        assert [record and record.status for record in found] == ["working", "failed"]
        assert kept == [("left", "failed"), ("running", "working")]
        assert not left.exists()
    assert len(list((tmp_path / "tasks.running").iterdir())) == 1
    await running.close()


async def test_a_task_whose_process_left_no_sign_of_life_reads_as_interrupted(tmp_path: Path) -> None:
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits())
    await store.create(task("left"))
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("UPDATE tasks SET runner = 'gone'")
    found = await store.read("left")
    await store.close()

    assert found is not None
    assert (found.status, found.message) == ("failed", INTERRUPTED)
