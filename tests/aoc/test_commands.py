"""Commands: what a person types, run as the real command."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.aoc.data import Data, entry
from tests.support.person import COMMAND
from tests.support.waiting import PATIENCE


def typed(data: Data, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "aoc", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "COLUMNS": "100", **data.environment(**more)},
    )


@pytest.fixture
def filled(data: Data) -> Data:
    data.put_speeds(1, [entry("fast", 1000), entry("slow|model", 2500), entry("slow|model", 2600)])
    return data


def test_the_leaderboard_is_a_table(filled: Data) -> None:
    done = typed(filled, "leaderboard")

    assert (done.returncode, done.stderr) == (0, "")
    first, second = [line.split() for line in done.stdout.splitlines() if "fast" in line or "slow|" in line]
    assert first == ["1", "fast", "1", "1", "1,000", "1,000", "1,000", "1.00×"]
    assert second[-1] == "2.55×"


def test_the_leaderboard_as_csv_can_be_read_back(filled: Data) -> None:
    rows = list(csv.DictReader(io.StringIO(typed(filled, "leaderboard", "--format", "csv").stdout)))

    assert [(row["rank"], row["llm"], row["median"], row["stdev"]) for row in rows] == [
        ("1", "fast", "1000", ""),
        ("2", "slow|model", "2550", str(5000**0.5)),
    ]


def test_the_leaderboard_as_json_can_be_read_back(filled: Data) -> None:
    board = json.loads(typed(filled, "leaderboard", "--format", "json").stdout)

    assert [row["slower"] for row in board["rows"]] == [1.0, 2.55]


def test_the_leaderboard_as_markdown_is_a_table(filled: Data) -> None:
    lines = typed(filled, "leaderboard", "--format", "markdown").stdout.splitlines()

    assert lines[0] == "| rank | llm | puzzles | n | best | median | mean | stdev | p95 | slower |"
    assert lines[3] == r"| 2 | slow\|model | 1 | 2 | 2,500 | 2,550 | 2,550 | 71 |  | 2.55× |"


def test_the_leaderboard_takes_filters(filled: Data) -> None:
    filled.put_speeds(2, [entry("other", 5, 2)])

    done = typed(filled, "leaderboard", "--day", "2", "--phase", "2", "--llm", "other", "--format", "csv")

    assert [row.split(",")[1] for row in done.stdout.splitlines()] == ["llm", "other"]


def test_an_uneven_board_says_so_and_an_empty_one_too(filled: Data) -> None:
    filled.put_speeds(2, [entry("fast", 5)])

    assert "like with like" in " ".join(typed(filled, "leaderboard").stdout.split())
    assert "No runs are recorded" in typed(filled, "leaderboard", "--day", "9").stdout


@pytest.mark.parametrize(
    "arguments", [["leaderboard", "--day", "26"], ["leaderboard", "--format", "xml"], ["nothing"], ["plot"]]
)
def test_wrong_usage_is_one_line_that_says_what_would_be_right(data: Data, arguments: list[str]) -> None:
    done = typed(data, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "Usage: bridgehead aoc" in done.stderr


def test_a_corrupt_file_stops_the_leaderboard_with_its_name(data: Data) -> None:
    data.put_speeds(1, b"{")

    done = typed(data, "leaderboard")

    assert (done.returncode, done.stdout) == (2, "")
    assert str(data.speeds_file(1)) in done.stderr


def test_check_finds_nothing_wrong_with_good_files(filled: Data) -> None:
    filled.puzzle(1, "one", "two")
    (filled.folder / "aliases.json").write_text('{"fast": ["quick"]}')
    (filled.folder / "instructions" / "README.md").write_text("not one of ours")

    done = typed(filled, "check")

    assert (done.returncode, done.stdout) == (0, "4 files read, no problems\n")


def test_check_needs_no_folders(tmp_path: Path) -> None:
    data = Data(tmp_path)
    data.instructions.rmdir()

    assert typed(data, "check").stdout == "0 files read, no problems\n"


def test_check_lists_every_problem_with_its_file_and_place(data: Data) -> None:
    data.puzzle(1, b"\xff", "two")
    (data.instructions / "Day03_phase2.md").write_text("alone")
    (data.instructions / "Day4_phase1.md").write_text("short number")
    (data.instructions / "day05.json").write_text("{")
    (data.instructions / "Day06_phase1.md").mkdir()
    (data.folder / "aliases.json").write_text("[]")
    good = entry("a", 1)
    data.put_speeds(
        1,
        [
            {**good, "phase": 3},
            good,
            {**good, "timestamp": "yesterday"},
            {"llm": "a", "phase": 1, "timestamp": ""},
            {**good, "llm": "a\nb"},
        ],
    )
    data.put_speeds(2, {"day": 3, "entries": []})
    data.put_speeds(3, b'{"day": 3, "entries": [')
    (data.speeds / "day26.json").write_text("{}")
    data.speeds_file(4).mkdir()

    done = typed(data, "check")

    assert done.returncode == 1
    lines = done.stdout.splitlines()
    for name, place in (
        ("Day01_phase1.md", "not UTF-8"),
        ("Day03_phase2.md", "Day03_phase1.md is missing"),
        ("Day4_phase1.md", "never read"),
        ("day05.json", "truncated"),
        ("Day06_phase1.md", "not a file"),
        ("aliases.json", "broken"),
        ("speeds/day01.json", "$.entries[0].phase"),
        ("speeds/day01.json", "$.entries[2].timestamp"),
        ("speeds/day01.json", "speedMs"),
        ("speeds/day01.json", "$.entries[4].llm"),
        ("speeds/day02.json", "of day 3"),
        ("speeds/day03.json", "truncated"),
        ("speeds/day26.json", "never read"),
        ("speeds/day04.json", "not a file"),
    ):
        assert any(name in line and place in line for line in lines), (name, place, lines)
    assert lines[-1] == "12 files read, 14 problems"


def test_plot_draws_pictures(filled: Data, tmp_path: Path) -> None:
    filled.put_speeds(
        2, [entry(f"model {number} with $ and a name that is rather long", 0) for number in range(30)]
    )

    png = typed(filled, "plot", str(tmp_path / "board.png"), "--day", "1", "--phase", "1")
    svg = typed(filled, "plot", str(tmp_path / "board.svg"))

    assert png.stdout == f"{tmp_path / 'board.png'}: 2 models, 3 runs\n", png.stderr
    assert (tmp_path / "board.png").read_bytes().startswith(b"\x89PNG")
    assert svg.stdout == f"{tmp_path / 'board.svg'}: 25 models, 25 runs\n", svg.stderr
    assert "<svg" in (tmp_path / "board.svg").read_text()


@pytest.mark.parametrize(
    ("file", "day", "word"),
    [
        ("board.pdf", "1", ".svg or .png"),
        ("board.svg", "2", "No runs"),
        ("no/such/board.svg", "1", "written"),
    ],
)
def test_plot_says_what_it_cannot_draw(filled: Data, tmp_path: Path, file: str, day: str, word: str) -> None:
    done = typed(filled, "plot", str(tmp_path / file), "--day", day)

    assert (done.returncode, done.stdout) == (2, "")
    assert word in done.stderr


def test_plot_says_how_to_install_what_it_needs(filled: Data, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from bridgehead.cli import main\n"
        f"sys.argv = ['bridgehead', 'aoc', 'plot', {str(tmp_path / 'x.svg')!r}]\n"
        "raise SystemExit(main())"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **filled.environment()},
    )

    assert done.returncode == 2
    assert 'pip install "bridgehead[plot]"' in done.stderr
