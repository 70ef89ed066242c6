"""Records in the database: what one replica wrote is what another reads."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.aoc.database.records import DatabaseRecords
from bridgehead.aoc.files.entries import Group, Wanted, id_of
from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.workspace import Workspace
from tests.aoc.data import entry
from tests.aoc.database_data import DatabaseData, replica

GPT4 = Group("gpt4", 1, "solving")


@pytest.fixture
def data(tmp_path: Path, database_url: str) -> DatabaseData:
    return DatabaseData(tmp_path, database_url)


def reader(workspace: Workspace, year: int = 2025) -> DatabaseRecords:
    assert workspace.database is not None
    return DatabaseRecords(workspace.database, year)


async def test_runs_entries_and_days_are_those_that_another_replica_recorded(data: DatabaseData) -> None:
    async with replica(data) as writer, replica(data) as other:
        for day, time in ((5, 30), (2, 10), (2, 20)):
            await writer.recorder.record(NewRun(day, 1, "gpt4", time))
        found = reader(other)
        runs = await asyncio.to_thread(found.runs, None, [])
        entries = await asyncio.to_thread(found.entries, [1, 2])
        days = await asyncio.to_thread(found.days)

    assert {day: one.groups[GPT4].ordered for day, one in runs.items()} == {2: [10, 20], 5: [30]}
    assert {day: [one.time for one in of_day] for day, of_day in entries.items()} == {2: [20, 10]}
    assert days == [2, 5]


async def test_one_day_is_read_alone_and_one_without_records_is_not_there(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        await workspace.recorder.record(NewRun(1, 1, "gpt4", 5))
        found = reader(workspace)

        assert list(await asyncio.to_thread(found.runs, 1, [])) == [1]
        assert await asyncio.to_thread(found.runs, 2, []) == {}


async def test_a_day_is_known_to_be_the_same_until_somebody_writes_to_it(data: DatabaseData) -> None:
    async with replica(data) as workspace, replica(data) as other:
        for day in (1, 2):
            await workspace.recorder.record(NewRun(day, 1, "gpt4", 5))
        found = reader(workspace)
        first = await asyncio.to_thread(found.runs, None, [])
        await other.recorder.record(NewRun(2, 1, "gpt4", 7))
        second = await asyncio.to_thread(found.runs, None, [])

    assert second[1] == first[1]
    assert second[2].identity != first[2].identity
    assert second[2].groups[GPT4].ordered == [5, 7]


async def test_years_are_apart(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        await workspace.recorder.record(NewRun(1, 1, "gpt4", 5))

        assert await asyncio.to_thread(reader(workspace, 2024).days) == []


async def test_changes_are_seen_of_records_withdrawals_and_attempts_and_of_nothing_else(
    data: DatabaseData,
) -> None:
    async with replica(data) as workspace:
        seen = [await workspace.changes()]
        made = await workspace.recorder.record(NewRun(1, 1, "gpt4", 5))
        seen.append(await workspace.changes())
        await workspace.recorder.withdraw(1, Wanted(id_of(1, made.entry)))
        seen.append(await workspace.changes())
        await asyncio.to_thread(workspace.stopwatch.start, 1, 1, "gpt4")
        seen.append(await workspace.changes())
        await asyncio.to_thread(reader(workspace).runs, None, [])

        assert await workspace.changes() == seen[-1]
    assert len(set(map(repr, seen))) == 4


async def test_aliases_are_those_of_the_folder_that_was_taken_in(data: DatabaseData) -> None:
    (data.folder / "aliases.json").write_bytes(b'{"gpt4": ["gpt-4"]}')
    await asyncio.to_thread(data.put_speeds, 1, [entry("gpt-4", 1)])
    async with replica(data) as workspace:
        aliases = await asyncio.to_thread(reader(workspace).aliases)

    assert (aliases.of("gpt-4"), aliases.of("o1")) == ("gpt4", "o1")
