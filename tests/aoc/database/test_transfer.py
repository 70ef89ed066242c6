"""Transfer: between a folder and the database and back, and the same board from both."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.commands import main
from bridgehead.aoc.files.entries import MEASURED, VERIFIED, Details, NewEntry
from bridgehead.aoc.files.names import canonical_name
from bridgehead.runtime.errors import InvalidArgument
from tests.aoc.data import Data, entry, put_graded
from tests.aoc.database_data import DatabaseData

NAMES = ["gpt4", "gpt-4", "claude", " claude ", "Gémini", "Ge\u0301mini", "o1"]


def fill(data: Data, seed: int = 3) -> None:
    """Put records of every kind, attempts and aliases there."""
    draw = random.Random(seed)  # noqa: S311 - times, not secrets
    for day in (1, 2, 5):
        entries: list[dict[str, Any]] = []
        for number in range(60):
            more = draw.choice([{}, {"measure": "execution"}, {"source": "measured"}, {"withdrawn": "yes"}])
            moment = f"2025-12-0{day}T10:{number:02}:00.000Z"
            entries.insert(
                0, entry(draw.choice(NAMES), draw.randrange(3000), draw.choice([1, 2]), moment, **more)
            )
        data.put_speeds(
            day, [*entries, entries[0], entries[0]]
        )  # equal ones count as often as they stand there
    graded = [
        NewEntry("gpt4", 1, 5, f"2025-12-05T11:0{n}:00.000Z", None, grade, Details(attempt=f"a{n}", tokens=n))
        for n, grade in enumerate((VERIFIED, MEASURED))
    ]
    put_graded(data, *graded, day=5)
    (data.folder / "aliases.json").write_text(json.dumps({"gpt4": ["gpt-4"]}))
    (data.folder / "attempts").mkdir(exist_ok=True)
    steps = [
        {
            "attempt": f"a{n}",
            "outcome": draw.choice(["solved", "failed"]),
            "llm": draw.choice(NAMES),
            "phase": 1,
            "timestamp": "2025-12-01T10:00:00.000Z",
            "seconds": 1.0 + n,
            "tokens": n,
        }
        for n in range(20)
    ]
    (data.folder / "attempts" / "day01.jsonl").write_text("".join(json.dumps(s) + "\n" for s in steps))


def shown(data: Data, capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    assert main(list(command), data.environment()) == 0
    return capsys.readouterr().out


@pytest.fixture
def both(tmp_path: Path, database_url: str) -> tuple[Data, DatabaseData]:
    """The same records in a folder and in a database."""
    files = Data(tmp_path / "files")
    fill(files)
    stored = DatabaseData(tmp_path / "stored", database_url)
    assert main(["import"], {**stored.environment(), "AOC_DATA_DIR": str(files.folder)}) == 0
    return files, stored


COMMANDS = [
    ("leaderboard", "--format", "json"),
    ("leaderboard", "--format", "json", "--order", "solve_rate"),
    ("leaderboard", "--format", "json", "--day", "2", "--phase", "1"),
    ("leaderboard", "--format", "csv", "--measure", "execution"),
    ("leaderboard", "--format", "markdown", "--llm", "gpt-4"),
    ("history", "--limit", "30"),
    ("history", "--llm", "gpt4", "--day", "5"),
    ("export", "--format", "csv"),
    ("export", "--format", "json"),
]


def test_boards_histories_and_exports_are_the_same_from_both(
    both: tuple[Data, DatabaseData], capsys: pytest.CaptureFixture[str]
) -> None:
    files, stored = both

    for command in COMMANDS:
        assert shown(stored, capsys, *command) == shown(files, capsys, *command)


def test_moving_again_doubles_nothing(
    both: tuple[Data, DatabaseData], capsys: pytest.CaptureFixture[str]
) -> None:
    files, stored = both
    before = shown(stored, capsys, "export")

    environment = {**stored.environment(), "AOC_DATA_DIR": str(files.folder)}
    capsys.readouterr()
    assert main(["import"], environment) == 0
    told = capsys.readouterr().out

    assert told.startswith("Moved 0 records and 0 steps")
    assert shown(stored, capsys, "export") == before


def test_a_folder_that_was_moved_there_and_back_is_the_same(
    both: tuple[Data, DatabaseData], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, stored = both
    for _ in range(2):  # the second time there is nothing to do
        shown(stored, capsys, "export", "--folder", str(tmp_path / "back"))
    back = Data(tmp_path / "back")

    for day in (1, 2, 5):
        assert back.entries(day) == files.entries(day)
    for command in COMMANDS:
        assert shown(back, capsys, *command) == shown(files, capsys, *command)
    assert canonical_name(NAMES[-2]) == canonical_name(NAMES[-3])


def test_what_is_recorded_in_the_database_is_not_doubled_by_what_was_moved_out_of_it(
    both: tuple[Data, DatabaseData], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, stored = both
    shown(stored, capsys, "export", "--folder", str(tmp_path / "back"))
    environment = {**stored.environment(), "AOC_DATA_DIR": str(tmp_path / "back")}
    capsys.readouterr()

    assert main(["import"], environment) == 0

    assert capsys.readouterr().out.startswith("Moved 0 records and 0 steps")


def test_a_corrupt_file_is_named_and_the_others_are_moved(
    tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = DatabaseData(tmp_path, database_url)
    Data.put_speeds(stored, 1, [entry("gpt4", 5)])
    Data.put_speeds(stored, 2, b"{")

    assert main(["import"], stored.environment()) == 1

    assert "day02.json is corrupt" in capsys.readouterr().err
    assert len(stored.entries(1)) == 1


def test_without_a_database_there_is_nothing_to_move_to(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no database"):
        main(["import"], Data(tmp_path).environment())
