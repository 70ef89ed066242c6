"""Command: `bridgehead aoc bench` as a person types it."""

import json
import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from bridgehead.aoc.bench.command import parse_days
from bridgehead.aoc.sandbox.isolation import find_bubblewrap
from tests.aoc.data import Data, typed
from tests.support.person import COMMAND
from tests.support.waiting import PATIENCE

GRADE = "measured" if find_bubblewrap() is None else "verified"


def test_the_demo_runs_scripted_agents_offline_and_ends_with_board_and_report(
    data: Data, tmp_path: Path
) -> None:
    folder = tmp_path / "demo"

    done = typed(data, "bench", "--demo", "--days", "1", "--repeats", "1", "--folder", str(folder))

    assert done.returncode == 0, done.stderr
    assert "3 of 3: patient-heron, day 1, run 1: phase 1 solved in " in done.stderr
    assert "quick-fox" in done.stdout
    assert f"Report: {folder / 'report.md'}" in done.stdout
    runs = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [(run["agent"], run["phases"][0]["grade"]) for run in runs] == [
        ("quick-fox", GRADE),
        ("careless-otter", GRADE),
        ("patient-heron", GRADE),
    ]
    assert "| quick-fox | demo | scripted | Python | 1 | 0 |" in (folder / "report.md").read_text()
    assert not data.speeds.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_ctrl_c_the_same_command_goes_on_where_it_was(
    data: Data, tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "demo"
    options = ["bench", "--demo", "--days", "1", "--repeats", "1", "--folder", str(folder)]
    journal = folder / "journal.jsonl"
    process = subprocess.Popen(
        [COMMAND, "aoc", *options],
        env={**os.environ, **data.environment(), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + PATIENCE
    while not journal.exists() or not journal.read_text():
        assert time.monotonic() < until
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    before = journal.read_text().splitlines()
    done = typed(data, *options)

    assert (process.returncode, "Run the same command again" in said) == (130, True)
    assert not list(tmp_path.glob("bridgehead-*"))
    after = journal.read_text().splitlines()
    assert 1 <= len(before) < len(after) == 3
    assert after[: len(before)] == before
    assert done.returncode == 0, done.stderr
    assert "patient-heron" in done.stdout
    assert "claimed" not in done.stdout


def test_a_file_to_begin_with_is_written_once(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "agents.toml"

    made = typed(data, "bench", "--init", "--agents", str(path))
    again = typed(data, "bench", "--init", "--agents", str(path))

    assert made.stdout.startswith(f"Made {path}.")
    assert 'preset = "claude"' in path.read_text()
    assert (again.returncode, "already" in again.stderr) == (2, True)


def test_without_isolation_agents_run_only_if_the_person_says_so(data: Data, tmp_path: Path) -> None:
    (tmp_path / "agents.toml").write_text('[[agent]]\nname = "x"\ncommand = ["no-such-agent", "{prompt}"]\n')
    data.puzzle(1, "text")
    options = ("bench", "--agents", str(tmp_path / "agents.toml"), "--days", "1")

    refused = typed(data, *options, PATH=str(tmp_path))
    allowed = typed(data, *options, "--no-isolation")

    assert (refused.returncode, "bubblewrap, which isolates them, is not available" in refused.stderr) == (
        2,
        True,
    )
    assert (allowed.returncode, "is not installed" in allowed.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "days"), [("3", [3]), ("1-3", [1, 2, 3]), ("1,5-6,2", [1, 2, 5, 6]), ("25", [25])]
)
def test_days_are_written_as_ranges_and_lists(text: str, days: list[int]) -> None:
    assert parse_days(text) == days


@pytest.mark.parametrize("text", ["0", "26", "5-1", "x", "-3", ""])
def test_other_days_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="such as 1-5 or 1,3,7"):
        parse_days(text)
