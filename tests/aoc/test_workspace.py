"""Event: one year's records as every call sees them, and boards that are made anew when they changed."""

import shutil
from typing import Any

import pytest

from bridgehead.aoc import workspace as workspace_module
from bridgehead.aoc.files.entries import Wanted, id_of
from bridgehead.aoc.files.filters import Filters
from bridgehead.aoc.files.recorder import NewRun
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import Workspace, open_workspace
from tests.aoc.data import Data, entry
from tests.support.checked import connect


def opened(data: Data, **more: str) -> Workspace:
    return open_workspace(AocSettings(data.environment(**more)))


def test_a_board_is_made_once_while_nothing_changes(filled: Data) -> None:
    workspace = opened(filled)
    first = workspace.board_now(Filters())

    assert workspace.board_now(Filters()) is first
    filled.put_speeds(2, [entry("fast", 3)])
    assert workspace.board_now(Filters()).days == [1, 2]


@pytest.mark.parametrize("changed", ["aliases", "attempts"])
def test_a_board_is_made_again_when_what_it_is_made_of_changes(filled: Data, changed: str) -> None:
    workspace = opened(filled)
    first = workspace.board_now(Filters())
    if changed == "aliases":
        (filled.folder / "aliases.json").write_bytes(b'{"fast": ["slow|model"]}')
    else:
        started = workspace.stopwatch.start(1, 1, "fast", "measured")
        workspace.stopwatch.hand_in(workspace.stopwatch.look_up(started.attempt), None)

    assert workspace.board_now(Filters()) != first


def test_of_very_many_boards_only_some_are_kept(filled: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_module, "MAX_BOARDS", 2)
    workspace = opened(filled)
    first = workspace.board_now(Filters())
    for day in (1, 2):
        workspace.board_now(Filters(day=day))

    assert workspace.board_now(Filters()) is not first


def test_a_model_keeps_its_rank_when_it_is_shown_alone(filled: Data) -> None:
    filled.put_speeds(9, [entry(llm, time) for llm, time in (("quick", 10), ("late", 90)) for _ in range(5)])

    (row,) = opened(filled).board_now(Filters(day=9, llm="late")).rows

    assert (row.rank, row.n) == (2, 5)


def test_a_model_with_times_of_another_measure_is_shown_by_those_unless_one_was_asked_for(
    filled: Data,
) -> None:
    filled.put_speeds(2, [entry("runner", 7, measure="execution")])
    workspace = opened(filled)

    found = workspace.board_now(Filters(llm="runner"))
    strict = workspace.board_now(Filters(llm="runner", measure="solving"))

    assert (found.board.measure, [row.llm for row in found.rows]) == ("execution", ["runner"])
    assert strict.rows == []
    assert strict.known == ["fast", "runner", "slow|model"]


def test_runs_of_every_day_are_listed_and_a_corrupt_day_is_named(filled: Data) -> None:
    filled.put_speeds(3, b"{")

    runs, skipped = opened(filled).runs_now(Filters())

    assert [run.llm for run in runs].count("slow|model") == 5
    assert [one.file for one in skipped] == [str(filled.speeds_file(3))]


async def test_what_a_client_recorded_is_on_the_board_that_it_asks_for_next(data: Data) -> None:
    workspace = opened(data)
    made = await workspace.recorder.record(NewRun(1, 1, "gpt4", 5), client=1)
    view = await workspace.board(Filters(), client=1)
    await workspace.recorder.withdraw(1, Wanted(id_of(1, made.entry)))
    after = await workspace.board(Filters(), client=1)
    await workspace.close()

    assert ([row.llm for row in view.rows], after.rows) == (["gpt4"], [])


async def test_models_of_both_measures_are_listed_once_under_the_names_that_they_count_as(data: Data) -> None:
    (data.folder / "aliases.json").write_bytes(b'{"gpt4": ["gpt-4"]}')
    data.put_speeds(1, [entry("gpt-4", 1), entry("gpt4", 2, measure="execution"), entry("o1", 3)])

    assert await opened(data).llms() == ["gpt4", "o1"]


async def test_files_have_no_changes_to_ask_for(data: Data) -> None:
    assert await opened(data).changes() is None


async def test_closing_an_event_that_never_recorded_opens_no_recorder(data: Data) -> None:
    workspace: Any = opened(data)
    await workspace.settled(client=1)
    await workspace.close()

    assert "recorder" not in vars(workspace)


# --- a disk that is unmounted ------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["record_speed", "start_attempt"])
@pytest.mark.parametrize("has_records", [True, False])
async def test_what_was_there_at_the_start_is_not_made_again_where_its_disk_was(
    data: Data, tool: str, *, has_records: bool
) -> None:
    data.puzzle(1, "Count the gulls.")
    for folder in ("speeds", "attempts") if has_records else ():
        (data.folder / folder).mkdir()
    arguments = {"day": 1, "phase": 1, "llm_name": "gpt4"} | (
        {"speed_ms": 5} if tool == "record_speed" else {}
    )
    away = data.folder.with_name("away")
    async with connect(data.bridge()) as client:
        await client.call("speed_history")
        data.folder.rename(away)
        if has_records:  # the mount point, and what a program that is still running made there
            data.instructions.mkdir(parents=True)
            data.puzzle(1, "Count the gulls.")
        result = await client.call(tool, arguments)
        left = sorted(path.name for path in data.folder.rglob("*")) if has_records else data.folder.exists()
        if has_records:
            shutil.rmtree(data.folder)
        away.rename(data.folder)
        again = await client.call(tool, arguments)

    assert result["isError"]
    if tool == "record_speed":
        assert (
            "is no longer there. Was its disk unmounted? Nothing was recorded."
            in result["content"][0]["text"]
        )
    assert left == (["Day01_phase1.md", "instructions"] if has_records else False)
    assert "isError" not in again
