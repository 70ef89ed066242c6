"""Heavy work is shared between callers: each has one turn at a time, and waits for one of each other."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from bridgehead.mcp import Turns, current_worker


class Work:
    """Work that runs until it is released, and notes in which order it began."""

    def __init__(self, limit: int, per_caller: int = 1) -> None:
        self.turns = Turns(limit, per_caller)
        self.began: list[str] = []
        self.running: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    def start(self, caller: str, name: str) -> asyncio.Task[None]:
        """Begin a piece of work for a caller."""
        self._ends[name] = asyncio.Event()

        async def run() -> None:
            current_worker.set(("game", caller))
            async with self.turns.take():
                self.began.append(name)
                self.running.append(name)
                await self._ends[name].wait()
                self.running.remove(name)

        return asyncio.create_task(run())

    def end(self, name: str) -> None:
        """Let a piece of work end."""
        self._ends[name].set()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_caller_with_much_work_waits_behind_another_with_one_piece() -> None:
    work = Work(1)
    tasks = [work.start("greedy", f"greedy {number}") for number in range(3)]
    await until(lambda: work.running == ["greedy 0"])
    tasks.append(work.start("modest", "modest"))
    for name in ("greedy 0", "greedy 1", "modest", "greedy 2"):
        work.end(name)

    await asyncio.gather(*tasks)

    assert work.began == ["greedy 0", "greedy 1", "modest", "greedy 2"]


async def test_one_caller_never_has_two_turns_although_there_is_room() -> None:
    work = Work(2)
    tasks = [work.start("greedy", f"greedy {number}") for number in range(2)]
    await settle()
    assert work.running == ["greedy 0"]

    tasks.append(work.start("modest", "modest"))
    await until(lambda: "modest" in work.running)

    assert work.running == ["greedy 0", "modest"]
    for name in ("greedy 0", "greedy 1", "modest"):
        work.end(name)
    await asyncio.gather(*tasks)


async def test_a_caller_may_be_given_several_turns_at_once() -> None:
    work = Work(3, per_caller=2)
    tasks = [work.start("greedy", f"greedy {number}") for number in range(3)]
    tasks.append(work.start("modest", "modest"))
    await until(lambda: "modest" in work.running)

    assert work.running == ["greedy 0", "greedy 1", "modest"]
    for name in ("greedy 0", "greedy 1", "greedy 2", "modest"):
        work.end(name)
    await asyncio.gather(*tasks)


async def test_without_a_caller_only_the_limit_counts() -> None:
    work = Work(2)
    tasks = [work.start("", str(number)) for number in range(3)]
    await settle()
    assert work.running == ["0", "1"]

    for number in range(3):
        work.end(str(number))
    await asyncio.gather(*tasks)


async def test_work_that_is_given_up_passes_its_turn_on() -> None:
    """Given up while it waits, while it runs, and at the moment at which its turn comes."""
    work = Work(1)
    running, waiting, due, last = (work.start(caller, caller) for caller in "abcd")
    await until(lambda: work.running == ["a"])
    waiting.cancel()
    running.cancel()
    await asyncio.sleep(0)  # `running` ends and gives its turn to `due`, which has not seen it yet
    due.cancel()
    work.end("d")

    async with asyncio.timeout(30):
        await last
    for task in (running, waiting, due):
        with suppress(asyncio.CancelledError):
            await task
    assert work.began == ["a", "d"]


async def test_a_thread_keeps_its_turn_although_its_call_was_cancelled() -> None:
    turns, let_go, began = Turns(2), threading.Event(), []

    def work(name: str) -> None:
        began.append(name)
        let_go.wait(30)
        raise OSError(name)  # troubles nobody: its call is gone

    def start(caller: str, name: str) -> asyncio.Task[None]:
        async def run() -> None:
            current_worker.set(("game", caller))
            await turns.run_in_thread(lambda: work(name))

        return asyncio.create_task(run())

    for name in ("first", "second", "third"):
        given_up = start("greedy", name)
        await settle()
        await until(lambda: bool(began))
        given_up.cancel()
        with suppress(asyncio.CancelledError):
            await given_up
    modest = start("modest", "modest")
    await until(lambda: "modest" in began)
    later = start("greedy", "later")
    await settle()

    assert began == ["first", "modest"]  # the second and third were given up before their turn
    let_go.set()
    for task in (modest, later):
        with suppress(OSError):
            await task
    assert began == ["first", "modest", "later"]
