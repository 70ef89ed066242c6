"""Records in the database: what one replica wrote is what another reads."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.database import read_schema
from bridgehead.aoc.database.records import DatabaseRecords
from bridgehead.aoc.files.entries import Group, Wanted, id_of
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import Workspace, open_workspace
from bridgehead.runtime.stores import migrations
from bridgehead.runtime.stores.postgres import Database
from tests.aoc.data import Data, entry
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


# --- pages of single runs ----------------------------------------------------------------------------------


async def pages(workspace: Workspace, limit: int, **filters: Any) -> list[tuple[int, str, int, str]]:
    runs: list[tuple[int, str, int, str]] = []
    older: int | None = None
    while True:
        page = (await workspace.history(Filters(**filters), limit, older)).page
        runs += [(run.day, run.llm, run.speed_ms, run.timestamp) for run in page.runs]
        if page.older is None:
            assert len(runs) == page.total
            return runs
        older = page.older


async def test_pages_are_those_of_the_files_that_were_taken_in(data: DatabaseData, tmp_path: Path) -> None:
    files = Data(tmp_path / "files")
    moments = ["2025-12-06T09:12:44.1234567Z", "2025-12-06T09:12:44.123Z", "sometime", "2025-12-05T00:00:00Z"]
    moments += ["2025-12-06T12:00:00+02:00", "2025-12-06T10:00:00.000Z", "2025-13-45T00:00:00Z", ""]
    for day in (3, 8):
        stored = [entry("ab"[n % 2], 10 * day + n, n % 3 % 2 + 1, moments[n]) for n in range(8)]
        files.put_speeds(day, stored)
        await asyncio.to_thread(data.put_speeds, day, stored)
    in_files = open_workspace(AocSettings(files.environment()))

    async with replica(data) as workspace:
        for filters in ({}, {"day": 3}, {"phase": 2}, {"llm": "B"}, {"measure": "execution"}):
            assert await pages(workspace, 3, **filters) == await pages(in_files, 3, **filters), filters
        assert len(await pages(workspace, 100)) == 16


async def test_runs_that_other_replicas_add_are_counted_and_listed(data: DatabaseData) -> None:
    async with replica(data) as workspace, replica(data) as other:
        await other.recorder.record(NewRun(1, 1, "gpt4", 5))
        assert [run[2] for run in await pages(workspace, 1)] == [5]
        made = await other.recorder.record(NewRun(1, 1, "o1", 7, "execution"))
        await other.recorder.withdraw(1, Wanted(id_of(1, made.entry)))

        assert [run[2] for run in await pages(workspace, 1)] == [7, 5]  # a withdrawn run is still listed
        assert [run[2] for run in await pages(workspace, 1, measure="execution")] == [7]
        assert await pages(workspace, 1, grade="measured") == []


async def test_a_page_begins_where_it_is_asked_for_after_older_runs_were_imported(data: DatabaseData) -> None:
    moments = [f"2025-12-06T10:00:0{n}.000Z" for n in range(6)]
    await asyncio.to_thread(data.put_speeds, 1, [entry("gpt4", n, 1, moments[n]) for n in (5, 4, 3)])
    async with replica(data) as workspace:
        first = await workspace.history(Filters(), 1, None)
        await asyncio.to_thread(data.put_speeds, 1, [entry("gpt4", n, 1, moments[n]) for n in (2, 1)])
        second = await workspace.history(Filters(), 2, 2)

    assert ([run.speed_ms for run in first.page.runs], first.page.older) == ([5], 2)
    assert ([run.speed_ms for run in second.page.runs], second.page.total) == ([2, 1], 5)


async def test_runs_are_counted_anew_after_a_restore_of_an_older_backup(data: DatabaseData) -> None:
    async with replica(data) as workspace:
        for time in (5, 6):
            await workspace.recorder.record(NewRun(1, 1, "gpt4", time))
        await pages(workspace, 10)
        assert workspace.database is not None

        async def restore(connection: Any) -> None:
            await connection.execute("delete from aoc_records where time = 6")
            await connection.execute("update aoc_days set revision = 1")

        await workspace.database.writer.run(restore)

        assert [run[2] for run in await pages(workspace, 10)] == [5]


async def test_rows_of_an_older_version_keep_their_place_in_the_order_of_time(
    tmp_path: Path, database_url: str
) -> None:
    database = Database(database_url)
    database.start()
    moments = ["2025-12-06T12:00:00+02:00", "2025-12-06T10:30:00Z", "sometime", "2025-13-45", "2025-12-06"]

    async def fill(connection: Any) -> None:
        await migrations.migrate(connection, [read_schema()], upto=2)
        await connection.execute("insert into aoc_days (year, day, revision) values (2025, 1, 1)")
        await connection.executemany(
            "insert into aoc_records (year, day, phase, llm, time, moment, revision, key) "
            "values (2025, 1, 1, 'gpt4', $1, $2, 1, gen_random_uuid())",
            list(enumerate(moments)),
        )

    await database.writer.run(fill)
    await database.close()
    data = await asyncio.to_thread(DatabaseData, tmp_path, database_url)
    async with replica(data) as workspace:
        assert [run[2] for run in await pages(workspace, 2)] == [1, 0, 4, 3, 2]
