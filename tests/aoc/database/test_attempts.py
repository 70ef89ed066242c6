"""Attempts in the database: committed when told, once each, and the same on every replica."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.files.attempts import MAX_TRIES, AttemptOutcome, AttemptStep
from bridgehead.aoc.workspace import Workspace
from tests.aoc.database_data import DatabaseData, faulty_replica, replica
from tests.support.postgres_server import PostgresServer

NOW = 1_800_000_000.0


@pytest.fixture
def data(tmp_path: Path, database_url: str) -> DatabaseData:
    return DatabaseData(tmp_path, database_url)


def step(attempt: str, outcome: AttemptOutcome, **more: Any) -> AttemptStep:
    return AttemptStep(attempt, outcome, "gpt4", 1, "", NOW, **more)


async def append(workspace: Workspace, day: int, *steps: AttemptStep) -> None:
    await asyncio.to_thread(workspace.attempts.append, day, list(steps))


async def test_an_attempt_that_one_replica_began_is_found_by_another_with_its_steps_in_order(
    data: DatabaseData,
) -> None:
    async with replica(data) as one, replica(data) as other:
        await append(one, 7, step("a", "started"), step("b", "started"))
        await append(one, 7, step("a", "wrong", time=5))
        found = await asyncio.to_thread(other.attempts.find, "a")
        of_day = await asyncio.to_thread(other.attempts.steps, 7)
        nobody = await asyncio.to_thread(other.attempts.find, "c")

    assert found == (7, [step("a", "started"), step("a", "wrong", time=5)])
    assert [one.attempt for one in of_day] == ["a", "b", "a"]
    assert nobody == (0, [])


async def test_the_last_step_of_an_attempt_counts_and_only_on_the_day_that_is_asked_for(
    data: DatabaseData,
) -> None:
    async with replica(data) as workspace:
        await append(
            workspace,
            1,
            step("a", "started", grade="measured"),
            step("a", "wrong"),
            step("a", "solved", tokens=10),
        )
        await append(workspace, 2, step("b", "failed"), step("c", "started"))

        everything = await asyncio.to_thread(workspace.attempts.ends, None, [])
        second = await asyncio.to_thread(workspace.attempts.ends, 2, [])

    assert [(e.day, e.step.attempt, e.step.outcome, e.wrong, e.started.grade) for e in everything] == [
        (1, "a", "solved", 1, "measured"),
        (2, "b", "failed", 0, "claimed"),
        (2, "c", "started", 0, "claimed"),
    ]
    assert everything[0].step.tokens == 10
    assert second == everything[1:]


async def test_the_identity_changes_with_every_step(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        before = await asyncio.to_thread(workspace.attempts.identity)
        await append(workspace, 1, step("a", "started"))
        after = await asyncio.to_thread(workspace.attempts.identity)

        assert before != after == await asyncio.to_thread(workspace.attempts.identity)


async def test_a_step_whose_connection_dies_before_its_answer_is_there_once(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    async with faulty_replica(data, postgres_server.port) as (workspace, proxy):
        await append(workspace, 1, step("a", "started"))
        proxy.cut_answer_to = lambda sent: b"the-end" in sent
        await append(workspace, 1, step("the-end", "solved"))
        found = await asyncio.to_thread(workspace.attempts.steps, 1)

    assert proxy.cuts == 1
    assert [one.outcome for one in found] == ["started", "solved"]


async def test_forty_guesses_at_once_on_two_replicas_are_five_tries(data: DatabaseData) -> None:
    async with replica(data) as one, replica(data) as other:
        await append(one, 1, step("a", "started"))
        guesses = [
            asyncio.to_thread(workspace.attempts.advance, 1, step("a", "wrong", time=n))
            for n, workspace in enumerate((one, other) * 10)
        ]
        ended = await asyncio.gather(*guesses)
        found = await asyncio.to_thread(one.attempts.steps, 1)

    assert [one.outcome for one in found] == ["started", *["wrong"] * MAX_TRIES, "failed"]
    assert max(ended, key=len) == found


async def test_an_end_whose_connection_dies_before_its_answer_is_the_first_end(
    data: DatabaseData, postgres_server: PostgresServer
) -> None:
    async with faulty_replica(data, postgres_server.port) as (workspace, proxy):
        await append(workspace, 1, step("a", "started"))
        for number, outcome in enumerate(("wrong", "solved"), start=1):
            proxy.cut_answer_to = lambda sent: b"COMMIT" in sent.upper()
            steps = await asyncio.to_thread(workspace.attempts.advance, 1, step("a", outcome))  # type: ignore[arg-type]
            assert (proxy.cuts, steps[-1].outcome) == (number, outcome)
        again = await asyncio.to_thread(workspace.attempts.advance, 1, step("a", "failed"))

    assert [one.outcome for one in again] == ["started", "wrong", "solved"]
