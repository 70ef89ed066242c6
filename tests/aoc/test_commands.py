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
from tests.support.checked import connect
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
    assert first == ["1*", "fast", "1.00×", "1", "s", "1", "1", "1", "s", "1", "1", "s"]
    assert second[:3] == ["2*", "slow|model", "2.55×"]
    assert "Ranked by the geometric mean" in done.stdout


LONG = "meta-llama/Llama-4-Maverick-17B-128E"


@pytest.mark.parametrize("columns", ["60", "80", None])
def test_names_are_whole_at_sixty_columns_and_in_a_pipe(data: Data, columns: str | None) -> None:
    data.put_speeds(1, [*(entry(LONG, time) for time in range(150_000, 186_000, 1000)), entry("o3", 9)])
    environment = {**os.environ, **data.environment()}
    environment.pop("COLUMNS", None)
    environment |= {"COLUMNS": columns} if columns else {}

    done = subprocess.run(
        [COMMAND, "aoc", "leaderboard"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )

    (row,) = [line for line in done.stdout.splitlines() if LONG in line]
    assert "2.79 min" in row
    assert ("stdev" in done.stdout) == (columns is None)
    assert all(len(line) <= int(columns or 1000) for line in done.stdout.splitlines())


def test_the_leaderboard_as_csv_can_be_read_back(filled: Data) -> None:
    rows = list(csv.DictReader(io.StringIO(typed(filled, "leaderboard", "--format", "csv").stdout)))

    assert [(row["rank"], row["llm"], row["median"], row["stdev"]) for row in rows] == [
        ("1", "fast", "1000", ""),
        ("2", "slow|model", "2550", str(5000**0.5)),
    ]


async def test_every_view_of_a_board_has_the_same_figures(filled: Data) -> None:
    table = typed(filled, "leaderboard").stdout
    as_json = json.loads(typed(filled, "leaderboard", "--format", "json").stdout)
    as_markdown = typed(filled, "leaderboard", "--format", "markdown").stdout
    async with connect(filled.bridge()) as client:
        tool = await client.call("speed_leaderboard")
        params = {"name": "compare_models", "arguments": {}}
        prompt = (await client.request("prompts/get", params))["messages"][0]["content"]["text"]

    assert as_json["rows"] == tool["structuredContent"]["rows"]
    assert as_json["rows"][1]["slower"] == pytest.approx(2.55)
    for text in (table, as_markdown, tool["content"][0]["text"], prompt):
        assert "2.55×" in text
        assert "2.55 s" in text


def test_the_leaderboard_as_markdown_is_a_table(filled: Data) -> None:
    lines = typed(filled, "leaderboard", "--format", "markdown").stdout.splitlines()

    assert lines[0] == (
        "| rank | model | slower | 95 % | median | runs | puzzles | best | claimed | mean | stdev |"
    )
    assert lines[3].startswith(r"| 2* | slow\|model | 2.55× | ")
    assert lines[3].endswith(" | 2.55 s | 2 | 1 | 2.5 s | 2 | 2.55 s | 70.7 ms |")


def test_the_leaderboard_takes_filters(filled: Data) -> None:
    filled.put_speeds(2, [entry("other", 5, 2)])

    done = typed(filled, "leaderboard", "--day", "2", "--phase", "2", "--llm", "other", "--format", "csv")

    assert [row.split(",")[1] for row in done.stdout.splitlines()] == ["llm", "other"]
    assert "Known models: fast, other, slow|model." in typed(filled, "leaderboard", "--llm", "none").stdout


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

    assert history[0] == "2025-12-02T00:00:00.000Z Day 2 Phase 2 fast: 5ms (execution, withdrawn)"
    assert (len(history), newest) == (4, history[:1])
    assert [(row["llm"], row["speed_ms"], row["withdrawn"]) for row in as_csv[:1]] == [("fast", "5", "True")]
    assert len(as_csv) == 4
    assert [(run["day"], run["measure"]) for run in as_json] == [(2, "execution"), (1, "solving")]


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
        ("speeds/day01.json", "line 1: `phase` must be 1 or 2. Fix or remove this entry"),
        ("speeds/day01.json", "'yesterday' is not an ISO 8601 timestamp"),
        ("speeds/day01.json", "neither `speedMs` nor `speed_ms`. Fix or remove this entry"),
        ("speeds/day01.json", "control characters"),
        ("speeds/day02.json", "of day 3"),
        ("speeds/day03.json", "line 1: not valid JSON (Input data was truncated). Fix or move the file"),
        ("speeds/day26.json", "never read"),
        ("speeds/day04.json", "not a file"),
    ):
        assert any(name in line and place in line for line in lines), (name, place, lines)
    assert lines[-1] == "12 files read, 14 problems"


def test_plot_draws_pictures(filled: Data, tmp_path: Path) -> None:
    filled.put_speeds(
        2, [entry(f"model {number} with $ and a name that is rather long", 0) for number in range(30)]
    )

    png = typed(filled, "plot", str(tmp_path / "board.PNG"), "--day", "1", "--phase", "1")
    svg = typed(filled, "plot", str(tmp_path / "board.svg"), "--day", "2", "--theme", "dark")
    pdf = typed(filled, "plot", str(tmp_path / "board.Pdf"))

    assert png.stdout == f"{tmp_path / 'board.PNG'}: 2 models, 3 runs\n", png.stderr
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
