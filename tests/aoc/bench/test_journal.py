"""Journal: what survives a crash."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridgehead.aoc.bench.journal import RunJournal, run_id
from bridgehead.aoc.files.seals import Seals
from tests.aoc.bench.results import NOT_STARTED, result


def open_journal(folder: Path) -> RunJournal:
    return RunJournal(folder, Seals(lambda: folder / "key"))


def test_runs_are_read_back_as_they_were(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    assert journal.results() == {}
    runs = [result(), result(day=2), result("owl", problem="It took over 60 s.", tokens=None)]

    for run in runs:
        journal.append(run)

    assert list(open_journal(tmp_path).results().values()) == runs


def test_half_a_line_of_a_killed_process_costs_that_run_alone(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append(result())
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id": "half')

    journal.append(result(day=2))

    assert [run.day for run in journal.results().values()] == [1, 2]


def test_of_a_run_that_was_written_twice_the_first_counts(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append(result(seconds=1.0))
    journal.append(result(seconds=2.0))

    assert [run.seconds for run in journal.results().values()] == [1.0]


def test_a_run_has_the_same_id_in_every_process_and_another_for_another_prompt() -> None:
    assert run_id("fox", 1, 1, "abc") == run_id("fox", 1, 1, "abc")
    ids = {
        run_id("fox", 1, 1, "abc"),
        run_id("fox", 1, 2, "abc"),
        run_id("fox", 11, 2, "abc"),
        run_id("fox", 1, 1, "d"),
    }
    assert len(ids) == 4


def test_grades_in_a_line_that_was_edited_or_made_up_are_claimed(tmp_path: Path) -> None:
    open_journal(tmp_path).append(result())
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"milliseconds":1500', b'"milliseconds":1'))
    with path.open("ab") as file:
        file.write(msgspec.json.encode(result(day=2)) + b"\n")
    open_journal(tmp_path).append(result(day=3))

    runs = open_journal(tmp_path).results().values()

    assert [[phase.grade for phase in run.phases] for run in runs] == [
        ["claimed", "claimed"],
        ["claimed", "claimed"],
        ["verified", "claimed"],
    ]


def test_an_agent_that_failed_before_it_began_is_replaced_by_its_next_run(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append(result(phases=[NOT_STARTED], status=1, seconds=1.0))
    (broken,) = journal.results().values()
    journal.append(result(seconds=2.0))

    (run,) = journal.results().values()

    assert (broken.is_broken, run.is_broken, run.seconds) == (True, False, 2.0)


@pytest.mark.parametrize("more", [{"status": 0}, {"status": 1, "problem": "It took over 60 s."}])
def test_an_agent_that_ended_without_beginning_or_was_ended_is_not_broken(more: dict[str, Any]) -> None:
    assert not result(phases=[NOT_STARTED], **more).is_broken
