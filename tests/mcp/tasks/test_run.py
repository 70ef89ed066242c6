"""One run: what its handler asks is asked once, and what it tells is bounded."""

import asyncio

import pytest

from bridgehead.mcp import Limits, ToolError, elicitation
from bridgehead.mcp.tasks.record import TaskRecord
from bridgehead.mcp.tasks.run import TaskRun
from tests.mcp.tasks.task_bridge import Name, Workshop, accept
from tests.support.task_client import connect

QUESTION = elicitation("Name?", Name)


async def begin(max_questions: int = 5) -> TaskRun:
    """Begin a run as if its call had become a task."""
    workshop = Workshop()
    async with connect(workshop.bridge) as client:
        task_id = await client.make("work")
        context = client.dispatcher.tasks._running[task_id].context  # noqa: SLF001
    run = TaskRun(context, lambda _work: b"{}", lambda: 5.0, max_questions)
    run.begin(TaskRecord("id", "owner", "caller", 1.0, 1.0, 60.0), lambda _record: None)
    return run


async def test_a_key_is_used_once_in_the_life_of_a_task() -> None:
    run = await begin()
    asking = [asyncio.ensure_future(run.ask({"name": QUESTION})) for _ in range(3)]
    await asyncio.sleep(0)
    run.take_answers({"name-2": accept("Bob"), "name": accept("Ann"), "name-3": accept("Cy")})
    answers = await asyncio.gather(*asking)

    assert [answer["name"].content.name for answer in answers] == ["Ann", "Bob", "Cy"]
    assert run.record is not None
    assert (run.record.status, run.record.payload) == ("working", b"")


async def test_a_task_asks_only_so_much_at_once() -> None:
    run = await begin(max_questions=1)
    with pytest.raises(ToolError, match="Too many questions"):
        await run.ask({"a": QUESTION, "b": QUESTION})


async def test_a_message_is_cut_where_it_is_long() -> None:
    run = await begin()
    run.report_progress(1, None, "x" * 5000)

    assert run.record is not None
    assert len(run.record.message) == 1000


async def test_nothing_changes_a_task_that_comes_to_its_end() -> None:
    run = await begin()
    assert run.close()
    before = run.record
    run.report_progress(1, None, "late")
    asking = asyncio.ensure_future(run.ask({"name": QUESTION}))
    await asyncio.sleep(0)
    asking.cancel()

    assert not run.close()
    assert run.record is before


async def test_a_call_that_stays_a_call_says_so_to_its_handler() -> None:
    run = await begin()
    call = TaskRun(run.context, lambda _work: b"{}", lambda: 5.0, Limits().client_requests)
    asked = asyncio.ensure_future(call.detach())
    await asyncio.sleep(0)
    call.stay()

    assert call.wanted.done()
    assert not await asked
    assert not call.is_detached
