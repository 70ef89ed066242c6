"""Threads: blocking work of one bridge or caller does not hold up that of another."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bridgehead.mcp import work_for_all
from bridgehead.mcp.threads import THREADS, THREADS_PER_CALLER, FairThreads, current_worker
from tests.support.waiting import PATIENCE


@contextmanager
def threads() -> Iterator[FairThreads]:
    executor = FairThreads()
    asyncio.get_running_loop().set_default_executor(executor)
    yield executor


class Gate:
    """Blocking work that ends when it is let go."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = 0
        self._lock = threading.Lock()

    def work(self) -> None:
        with self._lock:
            self.entered += 1
        self.open.wait(PATIENCE)

    async def has(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.entered < count:
                await asyncio.sleep(0.001)


async def do(bridge: str, caller: str, gate: Gate) -> None:
    current_worker.set((bridge, caller))
    await asyncio.to_thread(gate.work)


async def test_a_caller_has_a_part_of_the_threads_and_the_rest_of_its_work_waits() -> None:
    with threads():
        gate, other = Gate(), Gate()
        other.open.set()
        hogging = [asyncio.create_task(do("aoc", "eve", gate)) for _ in range(20)]
        await gate.has(THREADS_PER_CALLER)

        await asyncio.wait_for(do("aoc", "ada", other), PATIENCE)  # of the same bridge
        await asyncio.wait_for(do("mercury", "eve", other), PATIENCE)  # the same caller elsewhere

        assert gate.entered == THREADS_PER_CALLER
        gate.open.set()
        await asyncio.gather(*hogging)
        assert gate.entered == 20


async def test_the_threads_of_one_bridge_do_not_run_out_for_another() -> None:
    with threads():
        gate, other = Gate(), Gate()
        other.open.set()
        hogging = [asyncio.create_task(do("bitburner", f"caller {number}", gate)) for number in range(20)]
        await gate.has(THREADS)

        await asyncio.wait_for(do("aoc", "caller 1", other), PATIENCE)
        await asyncio.wait_for(do("", "", other), PATIENCE)

        gate.open.set()
        await asyncio.gather(*hogging)


async def test_work_that_many_wait_for_does_not_wait_with_the_caller_that_started_it() -> None:
    with threads():
        gate, other = Gate(), Gate()
        other.open.set()
        hogging = [asyncio.create_task(do("aoc", "eve", gate)) for _ in range(5)]
        await gate.has(THREADS_PER_CALLER)

        async def write_for_all() -> None:
            current_worker.set(("aoc", "eve"))
            work_for_all()
            await asyncio.to_thread(other.work)

        await asyncio.wait_for(asyncio.create_task(write_for_all()), PATIENCE)
        gate.open.set()
        await asyncio.gather(*hogging)


async def test_work_of_a_call_that_was_cancelled_while_it_waited_is_never_begun() -> None:
    with threads():
        gate, unwanted = Gate(), Gate()
        hogging = [asyncio.create_task(do("aoc", "eve", gate)) for _ in range(THREADS_PER_CALLER)]
        await gate.has(THREADS_PER_CALLER)
        waiting = asyncio.create_task(do("aoc", "eve", unwanted))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        gate.open.set()
        await asyncio.gather(*hogging)
        await asyncio.wait_for(do("aoc", "eve", gate), PATIENCE)
        assert unwanted.entered == 0


async def test_what_work_raises_reaches_who_waits_and_its_time_is_told_with_its_caller() -> None:
    told: list[tuple[str, float]] = []
    asyncio.get_running_loop().set_default_executor(FairThreads(lambda *time: told.append(time)))
    current_worker.set(("aoc", "ada"))

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await asyncio.to_thread(fail)
    async with asyncio.timeout(PATIENCE):
        while not told:
            await asyncio.sleep(0.001)
    assert told[0][0] == "ada"
    assert told[0][1] >= 0


async def test_after_the_end_nothing_is_begun_and_what_waits_is_cancelled() -> None:
    with threads() as executor:
        gate = Gate()
        hogging = [asyncio.create_task(do("aoc", "eve", gate)) for _ in range(THREADS_PER_CALLER + 1)]
        await gate.has(THREADS_PER_CALLER)
        executor.shutdown(wait=False)
        with pytest.raises(asyncio.CancelledError):
            await hogging[-1]
        with pytest.raises(RuntimeError):
            executor.submit(print)
        gate.open.set()
        await asyncio.gather(*hogging[:-1])


async def test_a_failure_in_a_thread_keeps_nothing_of_its_call_alive() -> None:
    """Large arguments would otherwise stay until the garbage collector runs, which it does seldom."""

    class Large:
        """Something that can be watched."""

    def fail(_: Large) -> None:
        raise LookupError

    async def call() -> weakref.ref[Large]:
        large = Large()
        with pytest.raises(LookupError):
            await asyncio.to_thread(fail, large)
        return weakref.ref(large)

    with threads():
        gc.disable()
        try:
            watched = await asyncio.create_task(call())
            async with asyncio.timeout(PATIENCE):
                while watched() is not None:  # the thread may be about to end its job
                    await asyncio.sleep(0.001)
        finally:
            gc.enable()
