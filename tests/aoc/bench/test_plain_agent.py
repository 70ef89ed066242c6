"""Plain agents: programs that read a puzzle and print an answer, compared in one line."""

import json
import sys
from pathlib import Path

import pytest

from bridgehead.aoc.bench.agents import plain_agents
from bridgehead.aoc.bench.demo import make_puzzles
from bridgehead.runtime.errors import InvalidArgument
from tests.aoc.data import Data, typed

SOLVER = """\
#!{python}
import math, os, sys
number = int(sys.stdin.read().split()[-1])
print("thinking")
print(math.isqrt(number) if os.environ["AOC_PHASE"] == "1" else "{second}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="scripts with a first line of their own")
def test_two_programs_are_compared_in_one_line(data: Data, tmp_path: Path) -> None:
    make_puzzles(data.folder, [1])
    answer = (data.folder / "answers" / "Day01_phase2.txt").read_text().strip()
    for name, second in (("good", answer), ("bad", "no idea")):
        script = tmp_path / f"{name}.py"
        script.write_text(SOLVER.format(python=sys.executable, second=second))
        script.chmod(0o755)
    agents = [f"--agent={name}={tmp_path / name}.py" for name in ("good", "bad")]

    done = typed(data, "bench", *agents, "--days", "1", "--no-isolation")

    assert done.returncode == 0, done.stderr
    runs = [
        json.loads(line) for line in (data.folder / "bench" / "journal.jsonl").read_text().split("\n") if line
    ]
    outcomes = {run["agent"]: [phase["outcome"] for phase in run["phases"]] for run in runs}
    assert outcomes == {"good": ["solved", "solved"], "bad": ["solved", "failed"]}
    assert "thinking" in Path(runs[0]["transcript"]).read_text()


@pytest.mark.parametrize("declared", ["fast", "=./fast.sh", "fast=", 'fa"st=true'])
def test_what_is_not_a_name_with_a_command_is_refused(declared: str) -> None:
    with pytest.raises(InvalidArgument, match="is not an agent"):
        plain_agents([declared])


def test_a_program_that_is_not_there_and_a_name_given_twice_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="the command of fast, is not there"):
        plain_agents(["fast=./no-such-program --quick"])
    with pytest.raises(InvalidArgument, match="two agents called 'fast'"):
        plain_agents([f"fast={sys.executable} a.py", f"fast={sys.executable} b.py"])
