"""Day cache: a day read on is the day read anew, and never changes under whoever reads it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bridgehead.aoc.database.day_cache import DAYS, CachedDay, DayCache, DayRevision
from bridgehead.aoc.files.entries import CLAIMED, MEASURED, Group, Wanted, id_of
from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import Workspace, open_workspace
from bridgehead.runtime.stores.postgres import Database
from tests.aoc.database_data import DatabaseData

GROUP = Group("gpt4", 1, "solving")


@pytest.fixture
def data(tmp_path: Path, database_url: str) -> DatabaseData:
    return DatabaseData(tmp_path, database_url)


@pytest.fixture
async def workspace(data: DatabaseData) -> AsyncIterator[Workspace]:
    database = Database(data.url)
    database.start()
    yield open_workspace(AocSettings(data.environment()), database=database)
    await database.close()


@pytest.fixture
async def connection(data: DatabaseData) -> AsyncIterator[Any]:
    held = await asyncpg.connect(data.url)
    yield held
    await held.close()


async def read(day_cache: DayCache, connection: Any) -> CachedDay:
    [row] = await connection.fetch(DAYS, 2025, None)
    return await day_cache.read(connection, DayRevision(*row))


def content(page: CachedDay) -> dict[Group, tuple[list[int], int, int, int]]:
    return {
        group: (runs.ordered, runs.claimed, runs.total, runs.squares) for group, runs in page.groups.items()
    }


async def test_a_day_that_was_read_on_is_the_same_as_one_read_anew(
    workspace: Workspace, connection: Any
) -> None:
    day_cache = DayCache(2025)
    for number in (30, 10, 20):
        await workspace.recorder.record(
            NewRun(1, 1, "gpt4", number, None, MEASURED if number == 10 else CLAIMED)
        )
        await workspace.recorder.record(NewRun(1, 2, "o1", number, "execution"))
        await read(day_cache, connection)

    assert content(await read(day_cache, connection)) == content(await read(DayCache(2025), connection))
    groups = (await read(day_cache, connection)).groups
    assert (groups[GROUP].ordered, groups[GROUP].claimed) == ([20, 30], 2)
    assert groups[GROUP._replace(grade=MEASURED)].ordered == [10]


async def test_a_record_that_was_taken_back_is_out_of_the_day(workspace: Workspace, connection: Any) -> None:
    day_cache = DayCache(2025)
    first = await workspace.recorder.record(NewRun(1, 1, "gpt4", 30))
    await workspace.recorder.record(NewRun(1, 1, "gpt4", 10))
    before = (await read(day_cache, connection)).groups[GROUP].ordered

    await workspace.recorder.withdraw(1, Wanted(id_of(1, first.entry)))

    assert before == [10, 30]
    assert (await read(day_cache, connection)).groups[GROUP].ordered == [10]


async def test_what_one_reader_holds_does_not_change_when_another_reads_on(
    workspace: Workspace, connection: Any
) -> None:
    day_cache = DayCache(2025, is_shared=True)
    await workspace.recorder.record(NewRun(1, 1, "gpt4", 30))
    held = (await read(day_cache, connection)).groups
    await workspace.recorder.record(NewRun(1, 1, "gpt4", 10))
    await workspace.recorder.record(NewRun(1, 1, "o1", 10))

    newer = (await read(day_cache, connection)).groups

    assert {group: runs.ordered for group, runs in held.items()} == {GROUP: [30]}
    assert newer[GROUP].ordered == [10, 30]
