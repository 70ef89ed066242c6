"""Folding: a recorder puts a journal into its day file soon after the last record, and loses nothing."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.aoc.files import journal, recorder
from bridgehead.aoc.files.day_file import DayFile
from bridgehead.runtime.errors import StorageError
from tests.aoc.data import Data, entry
from tests.aoc.files.test_recorder import GPT4, hold, open_recorder
from tests.support.waiting import until


@pytest.fixture
def journaled(data: Data, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of a day that has one whatever its size, and is folded soon."""
    monkeypatch.setattr(journal, "JOURNAL_FROM_BYTES", 50)
    monkeypatch.setattr(recorder, "IDLE_SECONDS", 0.05)
    data.put_speeds(1, [entry("gpt4", 1)])
    return data.speeds / ".day01.journal"


async def test_a_journal_is_folded_soon_and_records_go_on_after_it(data: Data, journaled: Path) -> None:
    one = open_recorder(data)
    for count in (2, 3):
        assert (await one.record(GPT4)).figures.n == count
        await until(lambda: not journaled.exists())
        await until(lambda count=count: len(data.entries(1)) == count)  # type: ignore[misc]


async def test_what_another_process_left_is_folded_too(data: Data, journaled: Path) -> None:
    await open_recorder(data).record(GPT4)
    assert journaled.exists()
    open_recorder(data).fold_leftovers()

    await until(lambda: not journaled.exists())


async def test_closing_folds_at_once_and_leaves_no_timer(
    data: Data, journaled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "IDLE_SECONDS", 600.0)
    one = open_recorder(data)
    await one.record(GPT4)
    await one.close()

    assert not journaled.exists()
    assert one._days[1]._folding is None  # noqa: SLF001


async def test_a_journal_that_another_process_writes_to_is_tried_again(
    data: Data, journaled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    fold = DayFile.fold

    def busy_at_first(file: DayFile, idle_seconds: float) -> bool:
        seen.append(idle_seconds)
        return len(seen) > 2 and fold(file, 0.0)

    monkeypatch.setattr(DayFile, "fold", busy_at_first)
    await open_recorder(data).record(GPT4)
    await until(lambda: not journaled.exists())

    assert len(seen) == 3
    assert max(seen) < recorder.IDLE_SECONDS  # else it would never be idle long enough when it is looked at


@pytest.mark.parametrize("failure", [StorageError("It is full."), RuntimeError("That is a bug.")])
async def test_a_journal_that_cannot_be_folded_is_not_tried_again_until_the_next_record(
    data: Data, journaled: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    tries: list[float] = []

    def fail(_file: DayFile, idle_seconds: float) -> bool:
        tries.append(idle_seconds)
        raise failure

    monkeypatch.setattr(DayFile, "fold", fail)
    one = open_recorder(data)
    await one.record(GPT4)
    await until(lambda: tries and one._days[1].task is None)  # noqa: SLF001
    assert one._days[1]._folding is None  # noqa: SLF001

    await one.record(GPT4)
    await until(lambda: len(tries) == 2)
    assert journaled.exists()


async def test_a_record_that_comes_while_a_journal_is_folded_has_its_turn_after_it(
    data: Data, journaled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = hold(monkeypatch, "fold", DayFile.fold)
    one = open_recorder(data)
    await one.record(GPT4)
    await until(lambda: one._days[1].task)  # noqa: SLF001 - which folds
    recording = asyncio.create_task(one.record(GPT4))
    await asyncio.sleep(0.01)
    assert not recording.done()
    released.set()

    assert (await recording).figures.n == 3


def test_records_of_a_command_are_folded_at_once(data: Data, journaled: Path) -> None:
    told = open_recorder(data).record_now([GPT4, GPT4._replace(time=7)])

    assert [one.figures.n for one in told] == [2, 3]
    assert [e["speedMs"] for e in data.entries(1)] == [7, 1250, 1]
    assert not journaled.exists()
    assert open_recorder(data).record_now([GPT4])[0].figures.n == 4
