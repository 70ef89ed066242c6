"""Results for tests: owns how one is made without an agent."""

import sys
from typing import Any

from msgspec.structs import replace

from bridgehead.aoc.bench import demo_agent
from bridgehead.aoc.bench.agents import Agent
from bridgehead.aoc.bench.journal import PhaseResult, RunResult, run_id

SOLVED = PhaseResult(1, "solved", 1500, 2, "verified")
FAILED = PhaseResult(2, "failed", 9000, 5, "claimed")
NOT_STARTED = PhaseResult(1, "not started", None, 0, "claimed")
RESULT = RunResult(
    id="",
    agent="fox",
    version="1.2",
    model="fox-large",
    language="Python",
    day=1,
    repeat=1,
    prompt_hash="abc",
    started="2025-12-01T10:00:00.000Z",
    seconds=30.0,
    is_isolated=True,
    phases=[SOLVED, FAILED],
    tokens=1000,
    cost_usd=0.5,
    status=0,
    problem="",
    transcript="transcripts/x.out",
    host="here",
)


def result(agent: str = "fox", day: int = 1, repeat: int = 1, **more: Any) -> RunResult:
    """Make the result of a run."""
    named = more.pop("id", None) or run_id(agent, day, repeat, "setup")
    return replace(RESULT, agent=agent, day=day, repeat=repeat, id=named, **more)


def scripted(name: str, *options: str) -> Agent:
    """Make a scripted agent."""
    command = [sys.executable, demo_agent.__file__, "--mcp", "{mcp_config}", *options, "{prompt}"]
    return Agent(name=name, command=command, version="1", model="scripted")


def program(name: str, text: str) -> Agent:
    """Make an agent that is a Python program; its arguments are the file of servers and the prompt."""
    return Agent(name=name, command=[sys.executable, "-c", text, "{mcp_config}", "{prompt}"])
