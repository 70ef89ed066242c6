"""Journal: what survives a crash."""

from pathlib import Path

from bridgehead.aoc.bench.journal import Journal, run_id
from tests.aoc.bench.results import result


def test_runs_are_read_back_as_they_were(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert journal.results() == {}
    runs = [result(), result(day=2), result("owl", problem="It took over 60 s.", tokens=None)]

    for run in runs:
        journal.append(run)

    assert list(Journal(tmp_path).results().values()) == runs


def test_half_a_line_of_a_killed_process_costs_that_run_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(result())
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id": "half')

    journal.append(result(day=2))

    assert [run.day for run in journal.results().values()] == [1, 2]


def test_of_a_run_that_was_written_twice_the_first_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
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
