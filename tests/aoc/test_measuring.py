"""Measuring: `bridgehead aoc run` as a person types it, on the puzzle of our own."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.measuring import NOT_ISOLATED, change_input, half_width
from bridgehead.aoc.sandbox.isolation import find_bubblewrap
from bridgehead.aoc.sandbox.program import EndedProgram
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.starter import ANSWER1, make_starter
from bridgehead.aoc.workspace import open_workspace
from tests.aoc.data import Data
from tests.support.person import COMMAND
from tests.support.waiting import PATIENCE

GRADE = "measured" if find_bubblewrap() is None else "verified"
SOLVE = "import math; print('working'); print(math.isqrt(int(input())))"


@pytest.fixture
def data(tmp_path: Path) -> Data:
    make_starter(tmp_path / "data")
    return Data(tmp_path / "data")


def run(
    data: Data, program: str, *options: str, phase: str = "1", **environment: str
) -> subprocess.CompletedProcess[str]:
    given = ["run", "--llm", "my model", "--day", "1", "--phase", phase, *options]
    return subprocess.run(
        [COMMAND, "aoc", *given, "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **data.environment(), **environment},
    )


def board(data: Data) -> Any:
    done = subprocess.run(
        [COMMAND, "aoc", "leaderboard", "--format", "json"],
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, **data.environment()},
    )
    return json.loads(done.stdout)


def test_a_right_program_is_timed_until_its_time_is_known_and_recorded(data: Data) -> None:
    done = run(data, SOLVE, "--max-runs", "10")

    assert done.returncode == 0, done.stderr
    entries = data.entries(1)
    assert 5 <= len(entries) <= 10
    assert done.stdout.startswith(f"Recorded {len(entries)} runs of my model, median ")
    said = [line.split(":")[0] for line in done.stderr.splitlines() if line != NOT_ISOLATED]
    assert said == ["warm-up 1", *(f"run {number + 1}" for number in range(len(entries)))]
    has_cpu_time = sys.platform != "win32"
    assert (" ms of CPU, right" in done.stderr) is has_cpu_time
    assert {(e["llm"], e["measure"], e["grade"]) for e in entries} == {("my model", "execution", GRADE)}
    assert all(e["speedMs"] >= 1 and e["details"]["host"] for e in entries)
    assert all(("cpu_ms" in e["details"]) is has_cpu_time for e in entries)
    (row,) = board(data)["rows"]
    assert (row["n"], row[GRADE], row["claimed"]) == (len(entries), len(entries), 0)
    assert (row["solved"], row["failed"], row["solve_rate"]) == (len(entries), 0, 1.0)


@pytest.mark.parametrize("option", ["--runs", "--max-runs"])
def test_fewer_than_five_runs_are_refused(data: Data, option: str) -> None:
    done = run(data, SOLVE, option, "4")

    assert (done.returncode, option in done.stderr) == (2, True)
    assert not data.speeds.exists()


def test_without_bubblewrap_a_run_is_measured_and_the_report_says_so(data: Data, tmp_path: Path) -> None:
    empty = tmp_path / "path"
    empty.mkdir()

    done = run(data, SOLVE, "--max-runs", "5", "--warm-up", "0", PATH=str(empty))

    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Not isolated: bubblewrap is not available here")
    assert done.stdout.endswith(", measured.\n")
    assert {entry["grade"] for entry in data.entries(1)} == {"measured"}


def test_an_interval_is_small_when_the_times_agree_and_unknown_for_one_run() -> None:
    def ended(*times: float) -> list[EndedProgram]:
        return [EndedProgram(time, 1, 0, "") for time in times]

    assert half_width(ended(100.0)) == math.inf
    assert half_width(ended(100.0, 100.0, 100.0)) == 0
    assert half_width(ended(100, 101, 99, 100, 100)) < 0.05 < half_width(ended(100, 120, 80, 130, 70))


def test_a_solver_keeps_its_own_relative_path_and_finds_only_the_input(data: Data, tmp_path: Path) -> None:
    solver = tmp_path / "mine" / "solve.py"
    solver.parent.mkdir()
    (solver.parent / "helper.py").write_text("from math import isqrt\n")
    solver.write_text(
        "import os, helper\n"
        "assert os.listdir() == ['input.txt'], os.listdir()\n"
        "assert 'AOC_DATA_DIR' not in os.environ\n"
        "open('cache', 'w').write('for the next run')\n"
        "print(helper.isqrt(int(open('input.txt').read())))\n"
    )
    given = ["run", "--llm", "m", "--day", "1", "--phase", "1", "--max-runs", "5"]

    done = subprocess.run(
        [COMMAND, "aoc", *given, "--", sys.executable, "mine/solve.py"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **data.environment()},
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(GRADE == "measured", reason="bubblewrap is not available on this system")
def test_a_solver_beside_the_answers_cannot_read_them(data: Data) -> None:
    transcript = data.folder / "bench" / "transcripts" / "1.out"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(f"{ANSWER1}\n")
    solver = data.folder / "solve.py"
    solver.write_text(
        "from pathlib import Path\n"
        "files = [path.name for path in Path(__file__).parent.rglob('*') if path.is_file()]\n"
        "raise SystemExit(str(sorted(files)))\n"
    )
    given = ["run", "--llm", "m", "--day", "1", "--phase", "1"]

    done = subprocess.run(
        [COMMAND, "aoc", *given, "--", sys.executable, str(solver)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **data.environment()},
    )

    assert "It said: ['.gitignore', 'Day01_phase1.md', 'Day01_phase2.md', 'solve.py']" in done.stdout


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import math; print(math.isqrt(int(input())) + 1)", "The answer is wrong: too high."),
        ("import math; print(math.isqrt(int(input())) - 1)", "The answer is wrong: too low."),
        ("print('many', input())", "The answer is wrong."),
        (f"print({ANSWER1})", "It prints the same for every input, so it is no solver."),
        (f"print({ANSWER1 + 1})", "It prints the same for every input, so it is no solver."),
        ("pass", "The program printed no answer."),
        ("import sys; sys.exit('it broke')", "The program ended with status 1. It said: it broke"),
    ],
)
def test_a_program_that_fails_leaves_no_time_but_counts_as_not_solved(
    data: Data, program: str, words: str
) -> None:
    done = run(data, program)

    assert done.returncode == 1
    assert words in done.stdout
    assert "No time was recorded" in done.stdout
    assert str(ANSWER1) not in done.stdout + done.stderr
    assert not data.speeds.exists()
    (row,) = board(data)["rows"]
    assert (row["n"], row["failed"], row["solve_rate"]) == (0, 1, 0.0)


def test_a_program_has_to_solve_every_input_there_is(data: Data) -> None:
    inputs, answers = data.folder / "inputs", data.folder / "answers"
    (inputs / "day01-2.txt").write_text("81\n")
    (answers / "Day01_phase1-2.txt").write_text("9\n")
    known_by_heart = f"print({ANSWER1} if len(input()) > 3 else 8)"

    assert (
        "does not solve the input day01-2.txt. Its answer was not checked" in run(data, known_by_heart).stdout
    )
    assert run(data, SOLVE).returncode == 0
    assert (
        "no problems"
        in subprocess.run(
            [COMMAND, "aoc", "check"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **data.environment()},
        ).stdout
    )


def test_a_changed_input_has_other_digits_and_the_opposite_order() -> None:
    assert change_input(b"10 a\n29\n") == b"31\n20 a\n"


def test_wrong_answers_of_programs_count_as_tries(data: Data) -> None:
    for number in range(5):
        run(data, f"import math; print(math.isqrt(int(input())) - {number + 1})")
    workspace = open_workspace(AocSettings(data.environment()))

    by_process = workspace.past_attempts(1, "another name", workspace.process)

    assert by_process.answers[1] == 5
    assert by_process.handed_out == set()
    assert workspace.past_attempts(1, "another name", "token:ann").answers[1] == 0


def test_an_answer_that_nobody_knows_is_recorded_unchecked(data: Data) -> None:
    (data.folder / "answers" / "Day01_phase1.txt").unlink()

    done = run(data, SOLVE, "--max-runs", "5", "--warm-up", "0")

    assert "not checked: no answer is known" in done.stderr
    (row,) = board(data)["rows"]
    assert (row["n"], row["solved"], row["failed"], row["solve_rate"]) == (5, 0, 0, None)


def test_at_the_limit_a_program_is_ended(data: Data) -> None:
    done = run(data, "import time; time.sleep(600)", "--timeout", "2")

    assert "It took over 2 s. It was ended. No time was recorded" in done.stdout


def test_a_program_that_cannot_be_run_is_named(data: Data) -> None:
    base = [str(COMMAND), "aoc", "run", "--llm", "m", "--day", "1", "--phase", "1"]
    environment = {**os.environ, **data.environment()}
    for command, words in (
        (["--", "./no-such-program"], "cannot be run"),
        ([], "There is no program to run."),
    ):
        done = subprocess.run(
            [*base, *command], capture_output=True, text=True, timeout=60, check=False, env=environment
        )
        assert (done.returncode, words in done.stderr) == (2, True)


def test_without_an_input_nothing_is_run(data: Data) -> None:
    (data.folder / "inputs" / "day01.txt").unlink()

    done = run(data, SOLVE)

    assert (done.returncode, "There is no input for day 1." in done.stderr) == (2, True)
