"""Recorder: acknowledged means committed, from any replica, whatever dies when; and stored once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files.entries import MEASURED, Details, Wanted, id_of
from bridgehead.aoc.files.recorder import NewRun, key_of
from bridgehead.aoc.workspace import Workspace
from bridgehead.runtime.errors import BridgeError, InvalidArgument, Unavailable
from tests.aoc.database_data import DatabaseData, faulty_replica, replica
from tests.support.checked import connect
from tests.support.messages import call
from tests.support.posix import KILL
from tests.support.postgres_server import PostgresServer, running
from tests.support.stdio_peer import Peer
from tests.support.waiting import PATIENCE, until

RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


@pytest.fixture
def data(tmp_path: Path, database_url: str) -> DatabaseData:
    return DatabaseData(tmp_path, database_url)


async def test_calls_that_wait_together_are_stored_by_one_statement(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        assert workspace.database is not None
        counts = await asyncio.gather(
            *(workspace.recorder.record(NewRun(1, 1, "gpt4", n)) for n in range(200))
        )
        statements = workspace.database.writer.outcomes["ok"]

    assert [done.figures.n for done in counts] == list(range(1, 201))
    assert sorted(e["speedMs"] for e in await asyncio.to_thread(data.entries, 1)) == list(range(200))
    assert statements < 5


async def test_the_records_of_each_of_many_callers_are_stored_in_their_order(data: DatabaseData) -> None:
    callers = range(1, 49)

    async with replica(data) as workspace:

        async def record_on(caller: int) -> list[int]:
            times = [caller * 1000 + n for n in range(20)]
            done = [
                workspace.recorder.record(NewRun(1, 1, f"model-{caller}", time), caller) for time in times
            ]
            return [found.figures.n for found in await asyncio.gather(*done)]

        counts = await asyncio.gather(*map(record_on, callers))

    assert counts == [list(range(1, 21))] * len(callers)
    stored = [e["speedMs"] for e in await asyncio.to_thread(data.entries, 1)]  # the newest first
    for caller in callers:
        own = [time for time in reversed(stored) if time // 1000 == caller]
        assert own == [caller * 1000 + n for n in range(20)]


@pytest.mark.parametrize("name", ['a "quoted" \\ name', "{a,b}", "NULL", "ünï — 你好", "it's; --"])
async def test_any_name_is_stored_as_it_is(data: DatabaseData, name: str) -> None:
    async with replica(data) as workspace:
        await workspace.recorder.record(NewRun(1, 1, name, 5))

    assert [e["llm"] for e in await asyncio.to_thread(data.entries, 1)] == [name]


async def test_what_a_caller_recorded_is_waited_for(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        recording = [
            asyncio.create_task(workspace.recorder.record(NewRun(1, 1, "gpt4", n), 7)) for n in range(5)
        ]
        await asyncio.sleep(0)
        await workspace.settled(7)
        stored = [e["speedMs"] for e in await asyncio.to_thread(data.entries, 1)]
        await asyncio.gather(*recording)

    assert sorted(stored) == list(range(5))


async def test_replicas_that_record_on_one_day_count_each_others_runs(data: DatabaseData) -> None:
    async with replica(data) as one, replica(data) as other, replica(data) as third:
        workspaces = (one, other, third)
        done = await asyncio.gather(
            *(workspaces[n % 3].recorder.record(NewRun(1, 1, "gpt4", n)) for n in range(120))
        )
        last = await third.recorder.record(NewRun(1, 2, "gpt4", 0))

    assert max(found.figures.n for found in done) == 120
    assert last.average == sum(range(120)) // 121


async def test_a_record_that_one_replica_takes_back_counts_no_more_on_another(data: DatabaseData) -> None:
    async with replica(data) as one, replica(data) as other:
        first = await one.recorder.record(NewRun(1, 1, "gpt4", 1000))
        await other.recorder.record(NewRun(1, 1, "gpt4", 10))
        await other.recorder.withdraw(1, Wanted(None, "gpt4", 1, first.entry.timestamp))
        last = await one.recorder.record(NewRun(1, 1, "gpt4", 20))

    assert (last.figures.n, last.figures.best, last.average) == (2, 10, 15)


async def test_a_record_is_taken_back_by_its_id_alone(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        made = [await workspace.recorder.record(NewRun(1, 1, "Gémini\\n", time)) for time in (5, 6)]
        gone = await workspace.recorder.withdraw(1, Wanted(id_of(1, made[0].entry)))

    assert gone.time == 5
    assert [entry["speedMs"] for entry in data.entries(1) if "withdrawn" in entry] == [5]


async def test_an_attempt_is_recorded_once_whichever_replica_ends_it(data: DatabaseData) -> None:
    run = NewRun(1, 1, "gpt4", 5, "solving", MEASURED, Details(attempt="a1", tries=2))
    async with replica(data) as one, replica(data) as other:
        together = await asyncio.gather(*(one.recorder.record(run) for _ in range(3)))
        again = await other.recorder.record(run)

    assert [entry["details"] for entry in data.entries(1)] == [{"tries": 2, "attempt": "a1"}]
    assert {made.entry.timestamp for made in together} == {again.entry.timestamp}
    assert (again.figures.n, again.entry.grade) == (1, "measured")


async def test_a_request_that_is_sent_again_is_stored_once_whichever_replica_gets_it(
    data: DatabaseData,
) -> None:
    params = {**call("record_speed", RUN), "_meta": {"bridgehead/idempotencyKey": "run-17"}}
    async with connect(data.bridge()) as one, connect(data.bridge()) as other:
        first = await one.request("tools/call", params)
        again = await other.request("tools/call", params)
        await one.request("tools/call", call("record_speed", RUN))

    assert again["structuredContent"] == first["structuredContent"]
    assert len(await asyncio.to_thread(data.entries, 1)) == 2


async def test_a_key_that_comes_twice_at_once_is_stored_once(data: DatabaseData) -> None:
    key = key_of("me", "twice")
    async with replica(data) as workspace:
        done = await asyncio.gather(
            *(workspace.recorder.record(NewRun(1, 1, "gpt4", 5), key=key) for _ in range(5))
        )

    assert [found.figures.n for found in done] == [1] * 5


async def test_a_key_belongs_to_one_record_and_to_one_caller(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        await workspace.recorder.record(NewRun(1, 1, "gpt4", 5), key=key_of("me", "k"))
        await workspace.recorder.record(NewRun(1, 1, "gpt4", 6), key=key_of("you", "k"))
        with pytest.raises(InvalidArgument, match="used for another record"):
            await workspace.recorder.record(NewRun(1, 1, "gpt4", 7), key=key_of("me", "k"))

    assert len(await asyncio.to_thread(data.entries, 1)) == 2


async def test_a_connection_that_dies_between_commit_and_answer_loses_and_doubles_nothing(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    async with faulty_replica(data, postgres_server.port) as (workspace, proxy):
        await workspace.recorder.record(NewRun(1, 1, "gpt4", 1))
        proxy.cut_answer_to = lambda sent: b"the-run" in sent
        done = await workspace.recorder.record(NewRun(1, 1, "the-run", 2))

    assert proxy.cuts == 1
    assert done.figures.n == 1
    assert [e["llm"] for e in await asyncio.to_thread(data.entries, 1)] == ["the-run", "gpt4"]


async def test_a_connection_that_stays_away_says_that_the_record_may_be_there(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    async with faulty_replica(data, postgres_server.port) as (workspace, proxy):
        await workspace.recorder.record(NewRun(1, 1, "gpt4", 1))
        proxy.cut_answer_to = lambda sent: b"the-run" in sent
        proxy.fault = "refused"
        with pytest.raises(Unavailable, match="may be there or not"):
            await workspace.recorder.record(NewRun(1, 1, "the-run", 2))


def answered(peer: Peer, number: int) -> bool:
    try:
        peer.request("tools/call", call("record_speed", {**RUN, "speed_ms": number}))
    except (AssertionError, KeyError):
        return False
    return True


def test_a_record_is_there_after_a_kill_of_the_replica_right_after_its_answer(data: DatabaseData) -> None:
    with data.served(is_cut_short=True) as peer:
        peer.shake_hands()
        assert answered(peer, 7)
        peer.process.send_signal(KILL)
        peer.process.wait(PATIENCE)

    assert [e["speedMs"] for e in data.entries(1)] == [7]


@pytest.fixture
def breakable() -> Iterator[PostgresServer]:
    with running() as server:
        yield server


async def test_no_acknowledged_record_is_lost_when_postgresql_is_killed_again_and_again(
    breakable: PostgresServer, tmp_path: Path
) -> None:
    data = await asyncio.to_thread(DatabaseData, tmp_path, breakable.url)
    acknowledged: list[int] = []
    numbers = iter(range(1_000_000))
    is_over = asyncio.Event()

    async def record_on(workspace: Workspace) -> None:
        while not is_over.is_set():
            number = next(numbers)
            try:
                await workspace.recorder.record(NewRun(1, 1, "gpt4", number))
            except BridgeError:
                await asyncio.sleep(0.01)
            else:
                acknowledged.append(number)

    async with replica(data) as one, replica(data) as other:
        callers = [asyncio.create_task(record_on(workspace)) for workspace in (one, other) for _ in range(8)]
        for _ in range(3):
            before = len(acknowledged)
            await until(lambda before=before: len(acknowledged) > before + 100)  # type: ignore[misc]
            await asyncio.to_thread(breakable.kill)
            await asyncio.to_thread(breakable.start)
        before = len(acknowledged)
        await until(lambda: len(acknowledged) > before + 100)
        is_over.set()
        await asyncio.gather(*callers)

    stored = [e["speedMs"] for e in await asyncio.to_thread(data.entries, 1)]
    assert len(stored) == len(set(stored))
    assert set(acknowledged) <= set(stored)


async def test_records_fail_at_once_while_the_database_is_gone_and_nothing_hangs(
    breakable: PostgresServer, tmp_path: Path
) -> None:
    data = await asyncio.to_thread(DatabaseData, tmp_path, breakable.url)
    data.puzzle(1, "Count the gulls.")
    async with connect(data.bridge()) as client:
        await client.call("record_speed", RUN)
        await asyncio.to_thread(breakable.kill)
        answers: list[Any] = [await client.call("record_speed", RUN) for _ in range(3)]
        puzzle = await client.text("fetch_instruction", {"day": 1})

    assert [answer["isError"] for answer in answers] == [True] * 3
    assert "database" in answers[0]["content"][0]["text"]
    assert "gulls" in puzzle
