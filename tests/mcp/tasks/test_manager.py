"""The tasks of a process: what becomes of them when it ends, its store fails, or others ask for them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bridgehead.mcp import Limits, in_memory
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.revisions import V2026_07_28
from bridgehead.mcp.tasks.manager import Tasks
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord
from bridgehead.mcp.tasks.store import MemoryTaskStore
from tests.mcp.tasks.task_bridge import Workshop, accept
from tests.support.task_client import CAPABILITIES, TaskClient, connect, join
from tests.support.waiting import until


class SharedStore(MemoryTaskStore):
    """A store in memory that several managers share, as processes share a file."""

    def __init__(self) -> None:
        super().__init__()
        self.hearers: list[Any] = []
        self.written: list[TaskRecord] = []

    async def open(self, limits: Limits, hearer: Any) -> None:
        await super().open(limits, hearer)
        self.hearers.append(hearer)

    async def close(self, left: Sequence[TaskRecord] = ()) -> None:
        """Keep what is left: another process may still read it."""
        for record in left:
            await super().write(record)

    async def write(self, record: TaskRecord) -> bool:
        is_kept = await super().write(record)
        self.written.append(record)
        for hearer in self.hearers:
            hearer.notice_change(record.id)
        return is_kept

    async def post(self, task_id: str, message: bytes) -> None:
        for hearer in self.hearers:
            hearer.take_message(task_id, message)


class Processes:
    """Two processes that serve the same workshop, and a client of each."""

    def __init__(self, workshop: Workshop, store: SharedStore) -> None:
        self.tasks = [Tasks(Limits(), lambda: store) for _ in range(2)]
        self.clients = [join(Dispatcher(workshop.bridge, tasks=tasks)) for tasks in self.tasks]

    async def stop(self) -> None:
        for tasks in self.tasks:
            await tasks.stop()


async def test_work_that_still_runs_when_the_server_ends_is_stopped() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_ids = [await here.make("work") for _ in range(3)]
    await until(lambda: workshop.begun == 3)
    await processes.tasks[0].stop()
    tasks = [await there.get(task_id) for task_id in task_ids]
    await processes.stop()

    assert workshop.stopped == 3
    assert {(task["status"], task["error"]["message"]) for task in tasks} == {("failed", INTERRUPTED)}
    assert store.written == []  # in one step, however many there are


async def test_any_process_answers_for_a_task_of_another() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_id = await here.make("ask_both")
    await there.reach(task_id, "input_required")
    await there.update(task_id, {"a": accept("Ann"), "b": {"action": "nonsense"}})
    await there.update(task_id, {"a": accept("Ann")})
    await there.update(task_id, {"b": accept("Bob")})
    done = await there.end(task_id)

    assert done["result"]["content"][0]["text"] == "Ann and Bob"
    await processes.stop()


async def test_any_process_cancels_a_task_of_another() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_id = await here.make("work")
    await until(lambda: workshop.begun)
    await there.cancel(task_id)
    task = await there.end(task_id)

    assert task["status"] == "cancelled"
    await until(lambda: workshop.stopped)
    await processes.stop()


async def test_a_stream_hears_of_a_task_that_another_process_runs() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_id = await here.make("work")
    seen: list[str] = []
    assert await processes.tasks[1].watch(task_id, "workshop\n\n", lambda record: seen.append(record.status))
    workshop.open.set()
    await there.end(task_id)
    await until(lambda: seen == ["working", "completed"])

    await processes.stop()


async def test_progress_is_kept_only_as_often_as_the_store_can() -> None:
    store = SharedStore()
    gate = asyncio.Event()
    write = store.write

    async def slow_write(record: TaskRecord) -> bool:
        await gate.wait()
        return await write(record)

    store.write = slow_write  # type: ignore[method-assign]
    workshop = Workshop()
    (client, _) = Processes(workshop, store).clients
    task_id = await client.make("tell")
    await until(lambda: client.dispatcher.tasks.count_running()["working"])
    run = client.dispatcher.tasks._running[task_id]  # noqa: SLF001
    for step in range(1000):
        run.tell(step, None, None)
    gate.set()
    workshop.open.set()
    await client.end(task_id)

    assert len(store.written) < 10
    assert store.written[-1].status == "completed"
    await client.dispatcher.tasks.stop()


class BrokenStore(MemoryTaskStore):
    """A store that cannot be opened, or that can keep nothing but new tasks."""

    def __init__(self, *, opens: bool) -> None:
        super().__init__()
        self._opens = opens

    async def open(self, limits: Limits, hearer: Any) -> None:
        if not self._opens:
            raise OSError("no disk")
        await super().open(limits, hearer)

    async def write(self, record: TaskRecord) -> bool:
        raise OSError("disk full")


@pytest.mark.parametrize("opens", [False, True])
async def test_a_store_that_fails_takes_no_result_away(opens: bool) -> None:  # noqa: FBT001
    workshop = Workshop()
    tasks = Tasks(Limits(), lambda: BrokenStore(opens=opens))
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    task_id = await client.make("work")
    workshop.open.set()
    done = await client.end(task_id)

    assert done["status"] == "completed"
    assert await client.get(task_id) == done
    await tasks.stop()


async def test_ended_tasks_are_counted_by_status() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        for tool in ("fail", "refuse", "bug"):
            await client.end(await client.make(tool))
        await client.cancel(await client.make("work"))
        await client.make("ask")
        tasks = client.dispatcher.tasks
        await until(lambda: tasks.count_running()["input_required"] == 1)

        assert tasks.ended == {"completed": 1, "failed": 2, "cancelled": 1}


async def test_nothing_is_left_of_thousands_of_tasks_that_have_expired() -> None:
    workshop = Workshop()
    limits = Limits(task_seconds=0.3, tasks_per_caller=10_000, tasks=10_000)
    workshop.open.set()
    async with in_memory.connect(workshop.bridge, revision=V2026_07_28, limits=limits) as plain:
        client = TaskClient(plain.dispatcher, V2026_07_28, CAPABILITIES)
        for _ in range(2000):
            await client.call("work")
            client.sent.clear()
        tasks = client.dispatcher.tasks
        await until(lambda: not tasks.count_running())
        await asyncio.sleep(0.3)
        await client.call("work")
        store = await tasks._open()  # noqa: SLF001
        await until(lambda: not tasks._following)  # noqa: SLF001

        assert len(store._records) == 1  # type: ignore[attr-defined]  # noqa: SLF001
        assert len(store._expiring) == 1  # type: ignore[attr-defined]  # noqa: SLF001
