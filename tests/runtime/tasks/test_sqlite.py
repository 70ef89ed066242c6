"""Tasks in a file: shared by processes, and read as interrupted when the one that ran them is gone."""

import asyncio
import json
import signal
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridgehead.mcp import Limits
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.features.tools import TASKS_EXTENSION
from bridgehead.mcp.tasks.manager import Tasks
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord, TooManyTasks
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.tasks import sqlite
from bridgehead.runtime.tasks.sqlite import FILE, SqliteTaskStore
from tests.mcp.tasks.task_bridge import Workshop, accept
from tests.support.posix import KILL
from tests.support.task_client import TaskClient, join
from tests.support.task_stores import Heard
from tests.support.task_worker import make_bridge
from tests.support.waiting import PATIENCE, until

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS_EXTENSION: {}}},
}


@asynccontextmanager
async def process(workshop: Workshop, folder: Path) -> AsyncIterator[TaskClient]:
    """Serve a workshop as one process would, with its tasks in a folder."""
    tasks = Tasks(Limits(), lambda: SqliteTaskStore(lambda: folder))
    yield join(Dispatcher(workshop.bridge, tasks=tasks))
    await tasks.stop()


async def test_any_process_answers_updates_and_cancels(tmp_path: Path) -> None:
    workshop = Workshop()
    async with process(workshop, tmp_path) as here, process(workshop, tmp_path) as there:
        asking, working = await here.make("ask_both"), await here.make("work")
        await there.reach(asking, "input_required")
        await there.update(asking, {"a": accept("Ann")})
        await there.update(asking, {"b": accept("Bob")})
        await there.cancel(working)
        done, cancelled = await there.end(asking), await there.end(working)

    assert done["result"]["content"][0]["text"] == "Ann and Bob"
    assert cancelled["status"] == "cancelled"
    assert workshop.stopped == 1


async def test_a_process_hears_of_the_tasks_that_it_watches(tmp_path: Path) -> None:
    workshop = Workshop()
    async with process(workshop, tmp_path) as here, process(workshop, tmp_path) as there:
        task_id = await here.make("work")
        seen: list[str] = []
        tasks = there.dispatcher.tasks
        assert await tasks.watch(task_id, "workshop\n\n", lambda record: seen.append(record.status))
        workshop.open.set()
        await until(lambda: seen[-1:] == ["completed"])


async def test_a_process_that_ended_in_good_order_leaves_results_and_reasons(tmp_path: Path) -> None:
    workshop = Workshop()
    async with process(workshop, tmp_path) as before:
        done, running = await before.make("fail"), await before.make("work")
        await before.end(done)
    async with process(workshop, tmp_path) as after:
        assert (await after.get(done))["result"]["isError"]
        assert (await after.get(running))["error"]["message"] == INTERRUPTED

    assert list((tmp_path / "tasks.running").iterdir()) == []


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


async def test_the_file_is_private(tmp_path: Path) -> None:
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits(), Heard())
    await store.close()

    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


async def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match="newer version"):
        await SqliteTaskStore(lambda: tmp_path).open(Limits(), Heard())


async def test_a_message_reaches_only_the_process_that_runs_the_task(tmp_path: Path) -> None:
    heard = [Heard(), Heard()]
    stores = [SqliteTaskStore(lambda: tmp_path) for _ in heard]
    for store, hearer in zip(stores, heard, strict=True):
        await store.open(Limits(), hearer)
    record = TaskRecord("id", "owner", "caller", 0.0, 0.0, 1e12)
    await stores[0].create(record)
    await stores[1].create(TaskRecord("other", "owner", "caller", 0.0, 0.0, 1e12))
    for body in (b"1", b"2"):
        await stores[1].post("id", body)
    await until(lambda: len(heard[0].messages) == 2)
    for store in stores:
        await store.close()

    assert heard[0].messages == [("id", b"1"), ("id", b"2")]
    assert heard[1].messages == []


async def test_only_so_many_messages_wait_for_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "POLL_SECONDS", 1e6)
    store = SqliteTaskStore(lambda: tmp_path)
    await store.open(Limits(), Heard())
    await store.create(TaskRecord("id", "owner", "caller", 0.0, 0.0, 1e12))
    for _ in range(sqlite.MOST_MESSAGES):
        await store.post("id", b"1")
    with pytest.raises(TooManyTasks, match="updates wait for this task"):
        await store.post("id", b"1")
    await store.close()
