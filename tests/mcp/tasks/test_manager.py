"""The tasks of a process: what becomes of them when it ends, its store fails, or others ask for them."""

import asyncio
import gc
from collections.abc import Sequence

import pytest

from bridgehead.mcp import OVERLOADED, Bridge, Context, Limits, NoArguments, ProtocolError, in_memory
from bridgehead.mcp.dispatch import Dispatcher
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.revisions import V2026_07_28
from bridgehead.mcp.shape import VALUE_BYTES
from bridgehead.mcp.tasks import manager
from bridgehead.mcp.tasks.manager import Tasks
from bridgehead.mcp.tasks.record import INTERRUPTED, TaskRecord, TooManyTasks
from bridgehead.mcp.tasks.store import MemoryTaskStore
from tests.mcp.tasks.task_bridge import Workshop
from tests.support.clock import Clock
from tests.support.task_client import CAPABILITIES, TaskClient, connect, join
from tests.support.waiting import until


class SharedStore(MemoryTaskStore):
    """A store in memory that several managers share, as processes share a file. It can be made to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[TaskRecord] = []
        self.problem: Exception | None = None
        self.gate = asyncio.Event()
        """Writing waits until it is set."""
        self.gate.set()

    async def close(self, left: Sequence[TaskRecord] = ()) -> None:
        """Write what is left, and forget nothing: another process may still read it."""
        self.problem = None
        for record in left:
            await self.write(record)

    async def write(self, record: TaskRecord) -> bool:
        await self.gate.wait()
        if self.problem is not None:
            raise self.problem
        self.written.append(record)
        return await super().write(record)


class Processes:
    """Two processes that serve the same workshop, and a client of each."""

    def __init__(self, workshop: Workshop, store: SharedStore) -> None:
        self.is_reachable = True
        self.tasks = [
            Tasks(Limits(), lambda: store, id_prefix=f"{name}~", fetch=self._fetch) for name in ("a", "b")
        ]
        self.clients = [join(Dispatcher(workshop.bridge, tasks=tasks)) for tasks in self.tasks]

    async def _fetch(self, task_id: str) -> TaskRecord | None:
        owner = self.tasks[task_id.startswith("b~")]
        return await owner.read(task_id) if self.is_reachable else None

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


async def test_a_process_shows_a_task_of_another_as_its_owner_does() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_id = await here.make("ask_both")
    asked = await there.reach(task_id, "input_required")
    own = await here.get(task_id)
    await processes.stop()

    assert task_id.startswith("a~")
    assert asked == own


async def test_only_its_process_can_change_a_task() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_id = await here.make("work")
    processes.is_reachable = False
    for change in (there.cancel(task_id), there.update(task_id, {})):
        with pytest.raises(ProtocolError, match="runs in another process") as refused:
            await change
        assert refused.value.code == OVERLOADED
    status = (await here.get(task_id))["status"]
    workshop.open.set()
    await here.end(task_id)
    await there.cancel(task_id)  # it has ended, so nothing is to be changed
    await processes.stop()

    assert status == "working"


async def test_a_task_of_a_machine_that_is_lost_is_said_to_be() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    _, there = processes.clients
    messages = []
    for task_id in ("b~unknown", "a~unknown"):
        with pytest.raises(ProtocolError) as unknown:
            await there.get(task_id)
        messages.append(unknown.value.message)
    await processes.stop()

    assert "lost with the machine" not in messages[0]
    assert "lost with the machine that ran it" in messages[1]


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


async def test_each_of_several_streams_hears_of_every_change_once() -> None:
    workshop, store = Workshop(), SharedStore()
    processes = Processes(workshop, store)
    here, there = processes.tasks
    task_id = await processes.clients[0].make("work")
    heard: list[list[str]] = [[] for _ in range(4)]
    for tasks, states in zip((here, here, there, there), heard, strict=True):

        def hear(record: TaskRecord, states: list[str] = states) -> None:
            states.append(record.status)

        assert await tasks.watch(task_id, "workshop\n\n", hear)
    workshop.open.set()
    await until(lambda: all("completed" in states for states in heard))
    # Nobody has left, and all the same nothing more is asked about a task that has ended.
    await until(lambda: not here._background and not there._background)  # noqa: SLF001

    assert heard == [["working", "completed"]] * 4
    await processes.stop()


async def test_only_a_final_state_is_stored() -> None:
    store, workshop = SharedStore(), Workshop()
    processes = Processes(workshop, store)
    client = processes.clients[0]
    task_id = await client.make("tell")
    await until(lambda: client.dispatcher.tasks.count_running()["working"])
    run = client.dispatcher.tasks._running[task_id]  # noqa: SLF001
    for step in range(1000):
        run.report_progress(step, None, None)
    workshop.open.set()
    await client.end(task_id)
    await processes.stop()

    assert [record.status for record in store.written] == ["completed"]


async def test_cancelling_answers_at_once_although_the_store_does_not() -> None:
    store, workshop = SharedStore(), Workshop()
    processes = Processes(workshop, store)
    client = processes.clients[0]
    task_ids = [await client.make("work") for _ in range(50)]
    await until(lambda: workshop.begun == 50)
    store.gate.clear()
    for task_id in task_ids:
        await client.cancel(task_id)
        assert client.dispatcher.tasks.count_running()["cancelled"] == 0, "its work may still unwind"
    statuses = {(await client.get(task_id))["status"] for task_id in task_ids}
    store.gate.set()
    await until(lambda: len(store.written) == 50)
    await until(lambda: not client.dispatcher.tasks._running)  # noqa: SLF001
    await processes.stop()

    assert statuses == {"cancelled"}
    assert workshop.stopped == 50


async def test_a_result_is_kept_until_the_store_takes_it() -> None:
    store, workshop = SharedStore(), Workshop()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_id = await here.make("work")
    store.problem = OSError("the store is away")
    workshop.open.set()
    done = await here.end(task_id)
    seen = [await there.get(task_id), await here.get(task_id)]
    store.problem = None
    await until(lambda: store.written)
    processes.is_reachable = False  # its process has ended, say
    afterwards = await there.get(task_id)
    await processes.stop()

    assert done["status"] == "completed"
    assert [*seen, afterwards] == [done] * 3


async def test_a_result_that_the_store_has_not_taken_is_stored_before_the_process_ends() -> None:
    store, workshop = SharedStore(), Workshop()
    processes = Processes(workshop, store)
    here, there = processes.clients
    task_id = await here.make("work")
    store.problem = OSError("the store is away")
    workshop.open.set()
    done = await here.end(task_id)
    await processes.tasks[0].stop()
    processes.is_reachable = False
    afterwards = await there.get(task_id)
    await processes.stop()

    assert afterwards == done


async def test_a_result_without_room_fails_and_says_why() -> None:
    store, workshop = SharedStore(), Workshop()
    tasks = Tasks(Limits(task_bytes_per_caller=1000), lambda: store)
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    task = await client.end(await client.make("much", {"size": 2000}))
    await tasks.stop()

    assert task["status"] == "failed"
    assert "may keep 1000 bytes" in task["error"]["message"]
    assert [record.status for record in store.written] == ["completed", "failed"]


async def test_a_callers_arguments_are_charged_while_its_task_runs_and_not_where_it_is_refused() -> None:
    workshop, accounts = Workshop(), Accounts(Limits())
    tasks = Tasks(Limits(tasks=1), SharedStore)
    tasks.ledger = accounts
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    task_id = await client.make("work")
    charged = dict(accounts.bytes.by_caller)
    with pytest.raises(ProtocolError, match="which is its limit"):
        await client.call("work")
    assert list(charged.values()) == [len("{}") + VALUE_BYTES]
    assert accounts.bytes.by_caller == charged

    workshop.open.set()
    await client.end(task_id)
    await until(lambda: not accounts.bytes.by_caller)
    await tasks.stop()


async def test_a_result_is_charged_until_the_store_has_it() -> None:
    workshop, store, accounts = Workshop(), SharedStore(), Accounts(Limits())
    tasks = Tasks(Limits(task_bytes_per_caller=1000), lambda: store)
    tasks.ledger = accounts
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    store.problem = OSError("the store is away")
    await client.end(await client.make("much", {"size": 500}))
    await until(lambda: 500 < sum(accounts.bytes.by_caller.values()) < 600)
    store.problem = None
    await until(lambda: not accounts.bytes.by_caller)

    await client.end(await client.make("much", {"size": 2000}))  # for which there is no room
    await until(lambda: not accounts.bytes.by_caller)
    await tasks.stop()


async def test_a_result_without_room_has_failed_before_that_is_stored() -> None:
    class SlowStore(SharedStore):
        async def write(self, record: TaskRecord) -> bool:
            try:
                return await super().write(record)
            except TooManyTasks:
                self.gate.clear()  # nothing is written from now on
                raise

    store, workshop = SlowStore(), Workshop()
    tasks = Tasks(Limits(task_bytes_per_caller=1000), lambda: store)
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    task_id = await client.make("much", {"size": 2000})
    await until(lambda: not tasks._running)  # noqa: SLF001 - only what waits for the store is left
    task = await client.get(task_id)
    store.gate.set()
    await tasks.stop()

    assert task["status"] == "failed"


async def test_a_result_that_is_being_stored_is_not_cancelled_any_more() -> None:
    store, workshop = SharedStore(), Workshop()
    tasks = Tasks(Limits(), lambda: store)
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    task_id = await client.make("work")
    store.gate.clear()
    workshop.open.set()
    await until(lambda: tasks._unstored)  # noqa: SLF001 - its work is done
    await client.cancel(task_id)
    store.gate.set()
    task = await client.end(task_id)
    await tasks.stop()

    assert task["status"] == "completed"
    assert [record.status for record in store.written] == ["completed"]


class BrokenStore(MemoryTaskStore):
    """A store that cannot be opened, or that can keep nothing but new tasks."""

    def __init__(self, *, opens: bool) -> None:
        super().__init__()
        self._opens = opens

    async def open(self, limits: Limits) -> None:
        if not self._opens:
            raise OSError("no disk")
        await super().open(limits)

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


async def test_without_room_an_optional_task_is_a_call_and_a_required_one_is_refused() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge, Limits(tasks=1)) as client:
        await client.make("work")
        for tool in ("work", "soon"):
            with pytest.raises(ProtocolError, match="which is its limit"):
                await client.call(tool)
        calls = [asyncio.create_task(client.call(tool)) for tool in ("at_once", "maybe", "if_it_may")]
        await until(lambda: workshop.begun == 5)  # the first task, the refused "soon", and these three
        workshop.open.set()
        answers = [(await call)["content"][0]["text"] for call in calls]

        assert answers == ["done, False", "done", "False, done"]


async def test_what_the_store_never_took_is_forgotten_with_its_time() -> None:
    workshop, clock = Workshop(), Clock(1000.0)
    tasks = Tasks(Limits(task_seconds=60), lambda: BrokenStore(opens=True), clock.now)
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    workshop.open.set()
    task_id = await client.make("work")
    await client.end(task_id)

    clock.set(1060.0)

    await until(lambda: not tasks._unstored)  # noqa: SLF001 - a host that never forgets fills up
    assert not tasks._running  # noqa: SLF001
    await tasks.stop()


async def test_a_task_that_has_ended_does_not_count_as_running_although_it_is_not_stored() -> None:
    workshop = Workshop()
    tasks = Tasks(Limits(), lambda: BrokenStore(opens=True))
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    ended, running = await client.make("quick_task"), await client.make("work")
    await client.end(ended)

    assert tasks.count_running() == {"working": 1}
    assert (await client.get(running))["status"] == "working"
    await tasks.stop()


async def test_the_limits_hold_where_tasks_are_kept_in_memory_because_the_disk_fails() -> None:
    workshop = Workshop()
    tasks = Tasks(Limits(tasks=1), lambda: BrokenStore(opens=False))
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    await client.make("work")
    with pytest.raises(ProtocolError, match="which is its limit"):
        await client.call("work")
    await tasks.stop()


async def test_a_store_that_hangs_does_not_keep_the_process_nor_go_on_after_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manager, "_STOP_SECONDS", 0.01)
    workshop, store = Workshop(), SharedStore()
    tasks = Tasks(Limits(), lambda: store)
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    store.gate.clear()
    await client.cancel(await client.make("work"))
    background = set(tasks._background)  # noqa: SLF001 - they would be destroyed while they are pending

    stopping = asyncio.create_task(tasks.stop())
    await until(lambda: bool(background) and all(task.done() for task in background))
    store.gate.set()
    await stopping

    assert [record.status for record in store.written] == ["cancelled"]


async def test_a_task_whose_time_is_over_has_failed_and_its_work_is_stopped() -> None:
    clock = Clock(1000.0)

    class LateStore(MemoryTaskStore):
        async def create(self, record: TaskRecord) -> None:
            await super().create(record)
            clock.set(record.expires)

    workshop = Workshop()
    tasks = Tasks(Limits(task_seconds=60), lambda: LateStore(clock.now), clock.now)
    await join(Dispatcher(workshop.bridge, tasks=tasks)).make("work")
    await until(lambda: tasks.ended)
    await until(lambda: not tasks._background)  # noqa: SLF001
    await tasks.stop()

    assert tasks.ended == {"failed": 1}
    assert workshop.begun == workshop.stopped


async def test_work_has_cleaned_up_when_the_server_has_ended_and_what_it_raises_troubles_nobody() -> None:
    has_cleaned_up = False
    bridge: Bridge[None] = Bridge("workshop", "1")

    @bridge.tool("Work, and clean up.", task="required", task_grace_seconds=0)
    async def work(_args: NoArguments, ctx: Context[None]) -> str:
        nonlocal has_cleaned_up
        try:
            return str(await asyncio.Event().wait())
        finally:
            for _ in range(100):
                await asyncio.sleep(0)
            has_cleaned_up = True
            raise OSError("the far side is gone")

    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, about: reported.append(about))
    tasks = Tasks(Limits())
    client = join(Dispatcher(bridge, tasks=tasks))
    await client.make("work")
    await asyncio.sleep(0)  # it begins
    await tasks.stop()
    del client, tasks
    gc.collect()  # asyncio reports what nobody looked at when it is freed

    assert has_cleaned_up
    assert reported == []


class SlowStore(MemoryTaskStore):
    """A store that takes its time to keep a new task."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()

    async def create(self, record: TaskRecord) -> None:
        await super().create(record)
        self.is_asked.set()
        await asyncio.Event().wait()


async def test_a_task_whose_id_no_client_learns_is_forgotten() -> None:
    workshop, store = Workshop(), SlowStore()
    tasks = Tasks(Limits(), lambda: store)
    client = join(Dispatcher(workshop.bridge, tasks=tasks))
    call = asyncio.create_task(client.call("maybe"))
    await store.is_asked.wait()

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await until(lambda: not store._records)  # noqa: SLF001 - it would count against the caller's limit
    await until(lambda: workshop.stopped == 1)
    await tasks.stop()


async def test_the_tasks_of_a_caller_who_may_not_have_them_any_more_are_cancelled_and_others_go_on() -> None:
    workshop, tasks = Workshop(), Tasks(Limits())
    dispatcher = Dispatcher(workshop.bridge, tasks=tasks)
    ann, bob = join(dispatcher, "ann"), join(dispatcher, "bob")
    gone, stays = await ann.make("work"), await bob.make("work")

    tasks.cancel_where(lambda context: context.connection.principal == "ann", "The token was revoked.")
    task = await ann.get(gone)
    other = await bob.get(stays)
    await until(lambda: workshop.stopped == 1)
    await tasks.stop()

    assert (task["status"], task["statusMessage"]) == ("cancelled", "The token was revoked.")
    assert other["status"] == "working"


async def test_ended_tasks_are_counted_by_status() -> None:
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        for tool in ("fail", "refuse", "bug"):
            await client.end(await client.make(tool))
        await client.cancel(await client.make("work"))
        await client.make("ask")
        tasks = client.dispatcher.tasks
        await until(lambda: tasks.count_running()["input_required"] == 1)

        assert tasks.ended == {"completed": 2, "failed": 1, "cancelled": 1}


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
        await until(lambda: not tasks._background)  # noqa: SLF001

        assert len(store._records) == 1  # type: ignore[attr-defined]  # noqa: SLF001
        assert len(store._expiring) == 1  # type: ignore[attr-defined]  # noqa: SLF001


async def test_a_store_that_fails_at_the_end_does_not_keep_a_process_from_ending(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class FullDisk(MemoryTaskStore):
        async def close(self, left: Sequence[TaskRecord] = ()) -> None:
            raise OSError(28, "No space left on device")

    tasks = Tasks(Limits(), FullDisk)
    await tasks.read("any")  # which opens the store
    await tasks.stop()

    assert "the final states of tasks were not stored" in caplog.text
