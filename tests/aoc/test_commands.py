"""Commands: what a person types, run as the real command."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridgehead.aoc import commands
from bridgehead.aoc.files.entries import NewEntry
from tests.aoc.data import Data, entry, put_graded, typed
from tests.support.person import COMMAND
from tests.support.waiting import PATIENCE

LONG = "meta-llama/Llama-4-Maverick-17B-128E"


def test_the_leaderboard_takes_filters(filled: Data) -> None:
    filled.put_speeds(2, [entry("other", 5, 2)])

    done = typed(filled, "leaderboard", "--day", "2", "--phase", "2", "--llm", "other", "--format", "csv")

    assert [row.split(",")[2] for row in done.stdout.splitlines()] == ["llm", "other"]
    assert "Known models: fast, other, slow|model." in typed(filled, "leaderboard", "--llm", "none").stdout


def test_a_board_of_one_puzzle_says_so_and_an_empty_one_too(filled: Data) -> None:
    assert "this is about these puzzles only" in " ".join(typed(filled, "leaderboard").stdout.split())
    assert "No runs are recorded" in typed(filled, "leaderboard", "--day", "9").stdout


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["leaderboard", "--day", "26"], "25"),
        (["leaderboard", "--format", "xml"], "table, csv, json, markdown"),
        (["nothing"], "leaderboard, plot"),
        (["plot"], "Usage: bridgehead aoc plot"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_is_valid(data: Data, arguments: list[str], hint: str) -> None:
    done = typed(data, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert hint in done.stderr


def test_settings_lists_every_setting_with_its_value_and_needs_no_database(
    data: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = "postgresql://me@127.0.0.1:9/none"
    assert commands.main(["settings"], data.environment(AOC_YEAR="2019", BRIDGEHEAD_DATABASE_URL=gone)) == 0

    told = capsys.readouterr().out
    assert "AOC_YEAR = 2019 (the environment)" in told
    assert "AOC_RECORD_KEYS = speedMs (default)" in told


def test_doctor_checks_the_folders_and_exits_with_1_where_something_is_wrong(filled: Data) -> None:
    assert typed(filled, "doctor").returncode == 0
    filled.put_speeds(3, b"{")

    done = typed(filled, "doctor")

    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ files" in done.stdout


def test_a_corrupt_file_is_skipped_and_named(filled: Data) -> None:
    filled.put_speeds(3, b"{")

    done = typed(filled, "leaderboard")

    assert (done.returncode, "fast" in done.stdout) == (0, True)
    assert f"skipped: {filled.speeds_file(3)} is corrupt" in done.stderr
    assert "bridgehead aoc check" in done.stderr


def test_history_and_export_give_every_run(filled: Data) -> None:
    filled.put_speeds(
        2, [entry("fast", 5, 2, "2025-12-02T00:00:00.000Z", measure="execution", withdrawn="2025-12-03")]
    )

    history = typed(filled, "history").stdout.splitlines()
    newest = typed(filled, "history", "--limit", "1").stdout.splitlines()
    as_csv = list(csv.DictReader(io.StringIO(typed(filled, "export", "--format", "csv").stdout)))
    as_json = json.loads(typed(filled, "export", "--llm", "fast").stdout)

    run, record = history[0].split(", id ")
    assert run == "2025-12-02T00:00:00.000Z Day 2 Phase 2 fast: 5ms (execution, withdrawn)"
    assert record == as_json[0]["id"]
    assert (len(history), newest) == (11, history[:1])
    assert [(row["llm"], row["speed_ms"], row["withdrawn"]) for row in as_csv[:1]] == [("fast", "5", "True")]
    assert len(as_csv) == 11
    assert [(run["day"], run["measure"]) for run in as_json] == [(2, "execution"), *[(1, "solving")] * 5]


def test_boards_histories_and_exports_can_be_of_one_grade(data: Data) -> None:
    data.put_speeds(1, [entry("claimer", 5)])
    put_graded(data, NewEntry("runner", 1, 7, "2025-12-01T10:30:00.000Z", grade="verified"))

    board = json.loads(typed(data, "leaderboard", "--grade", "verified", "--format", "json").stdout)
    exported = json.loads(typed(data, "export", "--grade", "claimed").stdout)
    history = typed(data, "history", "--grade", "verified").stdout

    assert ([row["llm"] for row in board["rows"]], board["grade"]) == (["runner"], "verified")
    assert [run["llm"] for run in exported] == ["claimer"]
    assert "runner" in history
    assert "claimer" not in history


def test_init_makes_a_folder_in_which_the_first_call_works(tmp_path: Path) -> None:
    data = Data(tmp_path / "new")

    made, again = typed(data, "init"), typed(data, "init")
    called = subprocess.run(
        [COMMAND, "call", "aoc", "fetch_instruction", "day=1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, **data.environment()},
    )

    assert made.stdout.count("made ") == 6
    assert "has everything already" in again.stdout
    assert "Lanterns on the quay" in called.stdout
    assert "answers/" in (data.folder / ".gitignore").read_text().splitlines()


def test_init_without_a_folder_makes_it_here_where_the_next_call_finds_it(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "AOC_DATA_DIR": ""}
    made, called = (
        subprocess.run(
            [COMMAND, *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            cwd=tmp_path,
            env=environment,
        )
        for words in (["aoc", "init"], ["call", "aoc", "fetch_instruction", "day=1"])
    )

    assert (tmp_path / "instructions" / "Day01_phase1.md").exists()
    assert f"AOC_DATA_DIR={tmp_path} bridgehead install CLIENT aoc" in made.stdout or os.name == "nt"
    assert "Lanterns on the quay" in called.stdout


def test_init_of_another_folder_prints_a_call_that_works_as_it_is(tmp_path: Path) -> None:
    data = Data(tmp_path / "data")
    made = typed(data, "init", str(tmp_path / "of mine"))
    command = made.stdout.splitlines()[-2].strip()

    if os.name != "nt":
        path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, **data.environment(), "PATH": path}
        called = subprocess.run(
            ["/bin/sh", "-c", command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Lanterns on the quay" in called.stdout


def test_init_where_nothing_can_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    refused = typed(Data(tmp_path / "data"), "init", str(tmp_path / "file"))

    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert f"{tmp_path / 'file'} cannot be written to: " in refused.stderr


def test_plot_draws_pictures(filled: Data, tmp_path: Path) -> None:
    filled.put_speeds(
        2, [entry(f"model {number} with $ and a name that is rather long", 0) for number in range(30)]
    )

    png = typed(filled, "plot", str(tmp_path / "board.PNG"), "--day", "1", "--phase", "1")
    svg = typed(filled, "plot", str(tmp_path / "board.svg"), "--day", "2", "--theme", "dark")
    pdf = typed(filled, "plot", str(tmp_path / "board.Pdf"))

    assert png.stdout == f"{tmp_path / 'board.PNG'}: 2 models, 10 runs\n", png.stderr
    assert (tmp_path / "board.PNG").read_bytes().startswith(b"\x89PNG")
    assert svg.stdout == f"{tmp_path / 'board.svg'}: 25 models, 25 runs\n", svg.stderr
    assert "<svg" in (tmp_path / "board.svg").read_text()
    assert pdf.returncode == 0, pdf.stderr
    assert (tmp_path / "board.Pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("file", "day", "word"),
    [
        ("board.gif", "1", ".svg, .png or .pdf"),
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
