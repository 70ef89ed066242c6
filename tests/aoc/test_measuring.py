"""Measuring: `bridgehead aoc run` as a person types it, on the puzzle of our own."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bridgehead.aoc.starter import ANSWER1, make_starter
from tests.aoc.data import Data
from tests.support.person import COMMAND
from tests.support.waiting import PATIENCE

SOLVE = "import math; print('working'); print(math.isqrt(int(input())))"


@pytest.fixture
def data(tmp_path: Path) -> Data:
    make_starter(tmp_path / "data")
    return Data(tmp_path / "data")


def run(data: Data, program: str, *options: str, phase: str = "1") -> subprocess.CompletedProcess[str]:
    given = ["run", "--llm", "my model", "--day", "1", "--phase", phase, *options]
    return subprocess.run(
        [COMMAND, "aoc", *given, "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **data.environment()},
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


def test_a_right_program_is_timed_and_recorded_as_measured_execution(data: Data) -> None:
    done = run(data, SOLVE, "--runs", "3")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Recorded 3 runs of my model, median ")
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == [
        "warm-up 1",
        "run 1 of 3",
        "run 2 of 3",
        "run 3 of 3",
    ]
    assert ", right" in done.stderr
    entries = data.entries(1)
    assert [(e["llm"], e["measure"], e["grade"]) for e in entries] == [
        ("my model", "execution", "measured")
    ] * 3
    assert all(e["speedMs"] >= 1 for e in entries)
    (row,) = board(data)["rows"]
    assert (row["n"], row["claimed"], row["attempts"], row["solved"], row["solve_rate"]) == (3, 0, 1, 1, 1.0)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (f"print({ANSWER1 + 1})", "The answer is wrong: too high."),
        (f"print({ANSWER1 - 1})", "The answer is wrong: too low."),
        ("print('many')", "The answer is wrong."),
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
    assert (row["n"], row["attempts"], row["solve_rate"]) == (0, 1, 0.0)


def test_an_answer_that_nobody_knows_is_recorded_unchecked(data: Data) -> None:
    (data.folder / "answers" / "Day01_phase1.txt").unlink()

    done = run(data, SOLVE, "--runs", "1", "--warm-up", "0")

    assert "not checked: no answer is known" in done.stderr
    (row,) = board(data)["rows"]
    assert (row["n"], row["attempts"], row["solved"], row["solve_rate"]) == (1, 1, 0, None)


def test_at_the_limit_a_program_is_ended_with_everything_that_it_started(data: Data, tmp_path: Path) -> None:
    note = tmp_path / "child"
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )

    done = run(data, program, "--timeout", "5")

    assert "did not end within 5 s and was ended" in done.stdout
    child = Path(f"/proc/{note.read_text()}/stat")
    until = time.monotonic() + PATIENCE
    while child.exists() and ") Z " not in child.read_text():
        assert time.monotonic() < until


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
