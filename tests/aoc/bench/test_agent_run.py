"""Agent run: what counts, and what an agent can and cannot do."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from msgspec.structs import replace

from bridgehead.aoc.bench import demo_agent
from bridgehead.aoc.bench.agent_run import (
    PROMPT_HASH,
    Assignment,
    BenchContext,
    find_version,
    judge,
    remove_leftovers,
    run_agent,
)
from bridgehead.aoc.bench.agents import Agent
from bridgehead.aoc.files.attempts import AttemptOutcome, AttemptStep
from bridgehead.aoc.files.entries import CLAIMED, MEASURED, Grade
from bridgehead.aoc.sandbox.isolation import find_bubblewrap
from tests.aoc.bench.results import program, scripted

GRADE = "measured" if find_bubblewrap() is None else "verified"
isolated = pytest.mark.skipif(find_bubblewrap() is None, reason="bubblewrap is not available on this system")


def test_an_agent_that_solves_both_phases_has_two_times(context: BenchContext) -> None:
    result = run_agent(Assignment(scripted("fox", "--slips", "1"), 2, 1), context, "1.0")

    assert [(phase.phase, phase.outcome, phase.wrong, phase.grade) for phase in result.phases] == [
        (1, "solved", 1, GRADE),
        (2, "solved", 1, GRADE),
    ]
    assert all(0 < (phase.milliseconds or 0) < result.seconds * 1000 for phase in result.phases)
    assert (result.agent, result.version, result.model, result.language) == (
        "fox",
        "1.0",
        "scripted",
        "Python",
    )
    assert (result.prompt_hash, result.status, result.problem) == (PROMPT_HASH, 0, "")
    assert result.tokens is not None
    assert '"type": "result"' in Path(result.transcript).read_text()


def test_an_agent_that_gives_up_has_not_solved_and_never_sees_phase_two(context: BenchContext) -> None:
    result = run_agent(Assignment(scripted("owl", "--fails"), 2, 1), context, None)

    assert [phase.outcome for phase in result.phases] == ["failed", "not started"]


def test_six_wrong_answers_are_one_too_many(context: BenchContext) -> None:
    (first, _) = run_agent(Assignment(scripted("otter", "--slips", "5"), 2, 1), context, None).phases

    assert (first.outcome, first.wrong) == ("failed", 5)


def test_an_agent_that_does_nothing_has_started_nothing(context: BenchContext) -> None:
    result = run_agent(
        Assignment(program("idle", "print('hello'); raise SystemExit(3)"), 1, 1), context, None
    )

    assert [phase.outcome for phase in result.phases] == ["not started", "not started"]
    assert (result.status, result.tokens, result.cost_usd) == (3, None, None)
    assert Path(result.transcript).read_text() == "hello\n"


def test_an_agent_that_does_not_end_is_ended(context: BenchContext) -> None:
    result = run_agent(
        Assignment(program("slow", "import time; time.sleep(600)"), 1, 1), replace(context, seconds=1.0), None
    )

    assert result.problem == "It took over 1 s."


def test_what_a_killed_benchmark_left_is_removed_and_a_run_under_way_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used, foreign = (tmp_path / f"bridgehead-{name}" for name in ("bench-1", "bench-2", "other"))
    for folder in (left, used, foreign):
        folder.mkdir()
        (folder / "lock").touch()
    with FileLock(used / "lock"):
        remove_leftovers()

    assert [folder.exists() for folder in (left, used, foreign)] == [False, True, True]


LOOK = """
import os, sys
from pathlib import Path
data = Path({data!r})
print(sorted(os.listdir("..")), os.listdir("."), Path.home() == Path("../home").resolve())
print([sorted(os.listdir(data / name)) if (data / name).is_dir() else None for name in {names}])
print("AOC_DATA_DIR" in os.environ, "start_attempt" in sys.argv[2])
"""


@isolated
def test_an_agent_finds_an_empty_folder_and_no_answers(context: BenchContext) -> None:
    data = Path(context.workspace.folders.answers).parent
    look = LOOK.format(data=str(data), names=("answers", "inputs", "instructions"))

    result = run_agent(Assignment(program("spy", look), 1, 1), context, None)

    printed = Path(result.transcript).read_text().splitlines()
    assert printed[0] == "['home', 'work'] [] True", Path(result.transcript).with_suffix(".err").read_text()
    assert printed[1] in {"[[], [], []]", "[None, None, None]"}
    assert printed[2] == "False True"


@isolated
def test_an_agent_cannot_read_the_folder_of_its_bridge(
    context: BenchContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if its program is in the same folder as everything temporary."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    spy = tmp_path / "temporary" / "spy.py"
    spy.write_text("import sys, pathlib; print(*pathlib.Path(sys.argv[1]).rglob('*phase1.txt'))")
    agent = Agent(name="spy", command=[sys.executable, str(spy), str(tmp_path), "{prompt}"])

    result = run_agent(Assignment(agent, 1, 1), context, None)

    assert (result.status, Path(result.transcript).read_text()) == (0, "\n")


TWO_CONNECTIONS = """
import json, sys, types
# Its source is part of this program: isolation may hide the folder in which the module is.
demo_agent = types.ModuleType("demo_agent")
exec({source!r}, demo_agent.__dict__)
Server = demo_agent.Server
server = json.load(open(sys.argv[1]))["mcpServers"]["aoc"]
first = Server([server["command"], *server["args"]])
try:
    print("read:", first.request({method!r}, {params!r}))
except Exception as refused:
    print("refused:", refused)
first.close()
second = Server([server["command"], *server["args"]])
attempt = second.call("start_attempt", day=1, phase=1, llm_name="fox")["attempt"]
second.call("finish_attempt", attempt=attempt, answer={answer!r})
"""


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "fetch_instruction", "arguments": {"day": 1}}),
        ("resources/read", {"uri": "aoc://day01"}),
        ("resources/read", {"uri": "aoc://day01/input"}),
        ("prompts/get", {"name": "solve_day", "arguments": {"day": "1", "phase": "1"}}),
    ],
)
def test_an_agent_can_read_nothing_before_the_clock_starts(
    context: BenchContext, method: str, params: dict[str, Any]
) -> None:
    answer = (Path(context.workspace.folders.answers) / "Day01_phase1.txt").read_text().strip()
    source = Path(demo_agent.__file__).read_text(encoding="utf-8")
    text = TWO_CONNECTIONS.format(source=source, method=method, params=params, answer=answer)

    result = run_agent(Assignment(program("fox", text), 1, 1), context, None)

    printed = Path(result.transcript).read_text()
    assert "refused:" in printed or "error" in printed.lower(), printed
    assert "lanterns" not in printed.lower()
    best = "verified" if context.bubblewrap else "measured"
    assert (result.phases[0].outcome, result.phases[0].grade) == ("solved", best), printed


def step(outcome: AttemptOutcome, attempt: str = "a", phase: int = 1, grade: Grade = CLAIMED) -> AttemptStep:
    return AttemptStep(attempt, outcome, "fox", phase, "t", 0.0, time=70, grade=grade)


def test_only_the_first_attempt_at_a_phase_counts() -> None:
    steps = [
        step("started"),
        step("failed"),
        step("started", "b"),
        step("solved", "b", grade=MEASURED),
        step("started", "c", 2),
    ]

    assert judge(steps, 1, 5000, is_isolated=True).outcome == "failed"
    assert judge(steps, 2, 5000, is_isolated=True).outcome == "failed"
    for nothing in ([], [step("given")]):
        assert judge(nothing, 1, 5000, is_isolated=True).outcome == "not started"


def test_tries_in_other_attempts_count_until_the_first_is_solved() -> None:
    guesses = [step("started"), step("started", "b"), *[step("wrong", "b")] * 4]
    solved = step("solved", grade=MEASURED)

    within = judge([*guesses, solved, step("wrong", "b")], 1, 5000, is_isolated=True)
    beyond = judge([*guesses, step("solved", "b"), solved], 1, 5000, is_isolated=True)

    assert (within.outcome, within.wrong, within.grade) == ("solved", 4, "verified")
    assert (beyond.outcome, beyond.wrong, beyond.grade) == ("failed", 4, "verified")


@pytest.mark.parametrize(
    ("grade", "is_isolated", "reached"),
    [(MEASURED, True, "verified"), (MEASURED, False, "measured"), (CLAIMED, True, "claimed")],
)
def test_a_time_is_verified_only_in_isolation_and_if_nothing_was_seen_before(
    grade: Grade, reached: str, *, is_isolated: bool
) -> None:
    steps = [step("started", grade=grade), step("wrong"), step("solved", grade=grade)]

    found = judge(steps, 1, 5000, is_isolated=is_isolated)

    assert (found.outcome, found.milliseconds, found.wrong, found.grade) == ("solved", 70, 1, reached)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_version_of_a_preset_is_what_its_command_says(context: BenchContext, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "agent"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho agent 7.1\necho more\n")
    tool.chmod(0o755)

    assert find_version(Agent(preset="claude", command=[str(tool), "{prompt}"]), context) == "agent 7.1"
    assert find_version(Agent(command=[str(tool), "{prompt}"]), context) is None
    assert find_version(Agent(preset="claude", command=["no"], version="9"), context) == "9"
