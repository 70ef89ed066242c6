"""Runs: what is kept of an answer that is being refined, for whom, and how it is stopped."""

import asyncio

import pytest

from bridgehead.mercury.calling.runs import MAX_RUNS, MAX_STATE_CHARACTERS, MAX_STATES, Runs
from bridgehead.mercury.completion import Completion, Metadata, Tokens
from bridgehead.mercury.errors import MercuryError
from bridgehead.runtime.timing import SystemClock

WHOLE = Completion("whole", Metadata(model="mercury", usage=Tokens(1, 2, 3), finish_reason="stop"))


@pytest.fixture
def runs() -> Runs:
    return Runs(SystemClock())


async def finish() -> Completion:
    return WHOLE


async def test_a_run_is_found_by_its_owner_alone(runs: Runs) -> None:
    run = runs.begin("ada", "Hello?")

    assert runs.find("ada", run.name, None) is run
    assert runs.find("ada", None, "Hello?") is run
    assert runs.find("bob", run.name, None) is None
    assert runs.find("bob", None, "Hello?") is None


async def test_the_newest_run_answers_a_message(runs: Runs) -> None:
    runs.begin("ada", "Hello?")
    newer = runs.begin("ada", "Hello?")

    assert runs.find("ada", None, "Hello?") is newer


async def test_states_are_thinned_out_and_the_last_is_kept(runs: Runs) -> None:
    run = runs.begin("ada", "Hello?")
    for number in range(1000):
        run.add_state(f"state {number}")

    assert run.count == 1000
    assert len(run.states) <= MAX_STATES
    assert run.states[0][1] == "state 0"
    assert run.states[-1][1] == "state 999"


async def test_long_texts_are_kept_within_their_share(runs: Runs) -> None:
    run = runs.begin("ada", "Hello?")
    for _ in range(200):
        run.add_state("x" * 50_000)

    assert sum(len(text) for _, text in run.states) <= MAX_STATE_CHARACTERS + 50_000


async def test_the_oldest_ended_run_makes_room(runs: Runs) -> None:
    first = runs.begin("ada", "first")
    second = runs.begin("ada", "second")
    await second.watch(finish())
    for number in range(MAX_RUNS - 1):
        runs.begin("ada", f"more {number}")

    assert runs.find("ada", first.name, None) is first
    assert runs.find("ada", second.name, None) is None


async def test_whoever_watches_is_woken_by_a_state_and_by_the_end(runs: Runs) -> None:
    run = runs.begin("ada", "Hello?")
    waiting = asyncio.create_task(run.wait_for_news(0, 60))
    await asyncio.sleep(0)
    run.add_state("first")
    await waiting
    waiting = asyncio.create_task(run.wait_for_news(1, 60))
    await asyncio.sleep(0)
    assert await run.watch(finish()) is WHOLE
    await waiting

    assert (run.status, run.completion) == ("done", WHOLE)


async def test_nothing_new_is_said_after_the_time_is_up(runs: Runs) -> None:
    run = runs.begin("ada", "Hello?")
    await run.wait_for_news(0, 0.001)

    assert (run.status, run.count) == ("running", 0)


async def test_stopping_ends_the_work_and_tells_what_had_come(runs: Runs) -> None:
    run = runs.begin("ada", "Hello?")
    ended = asyncio.Event()

    async def work() -> Completion:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return WHOLE

    run.add_state("half")
    watched = asyncio.create_task(run.watch(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(MercuryError) as stopped:
        await watched

    assert ended.is_set()
    assert (stopped.value.code, stopped.value.content) == ("STOPPED", "half")
    assert run.status == "cancelled"


async def test_a_cancelled_call_is_cancelled_as_always(runs: Runs) -> None:
    run = runs.begin("ada", "Hello?")
    watched = asyncio.create_task(run.watch(asyncio.sleep(3600, WHOLE)))
    await asyncio.sleep(0)
    watched.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watched

    assert run.status == "cancelled"


async def test_a_failure_is_told_to_both(runs: Runs) -> None:
    async def fail() -> Completion:
        raise MercuryError("TIMEOUT", "Too slow.")

    run = runs.begin("ada", "Hello?")
    with pytest.raises(MercuryError, match=r"Too slow\."):
        await run.watch(fail())
    run.cancel()

    assert (run.status, run.problem) == ("failed", "Too slow.")
