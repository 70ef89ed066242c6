"""Demo of a benchmark: invented puzzles and scripted agents, offline."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from ..starter import LANTERNS, PHASE1, PHASE2
from . import demo_agent
from .agents import Agent

TICKETS = """\
# Ferry tickets

Your input is a list of ticket numbers. A ticket is lucky if its number can be divided by the sum of its
digits: 12 is lucky, 13 is not. How many tickets are lucky?
"""
TICKETS_SUM = "The conductor adds up the numbers of the lucky tickets. What is their sum?\n"
GULLS = """\
# Gulls on a wire

Your input is what a keeper wrote down: one letter for each gull on a wire, by its kind. Gulls of one kind
that sit side by side are a flock. In aabbbba there are flocks of 2, 4 and 1.

How many gulls has the largest flock?
"""
GULLS_SIZES = "How many different sizes do the flocks have?\n"
TEXTS = {1: (PHASE1, PHASE2), 2: (TICKETS, TICKETS_SUM), 3: (GULLS, GULLS_SIZES)}
AGENTS = {
    "quick-fox": ["--pause", "0.02"],
    "careless-otter": ["--pause", "0.05", "--slips", "2", "--fails"],
    "patient-heron": ["--pause", "0.8"],
}


def make_puzzles(folder: Path, days: list[int]) -> None:
    """Put invented puzzles into a data folder, with inputs and answers."""
    draw = random.Random(2025)  # noqa: S311 - the same puzzles each time
    inputs = {
        1: f"{LANTERNS}\n",
        2: "\n".join(str(draw.randrange(1, 10_000)) for _ in range(400)) + "\n",
        3: "".join(draw.choice("ghk") * draw.randrange(1, 12) for _ in range(300)) + "\n",
    }
    for name in ("instructions", "inputs", "answers"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for day in days:
        (folder / "inputs" / f"day{day:02}.txt").write_text(inputs[day], encoding="utf-8")
        for phase, text in enumerate(TEXTS[day], start=1):
            name = f"Day{day:02}_phase{phase}"
            (folder / "instructions" / f"{name}.md").write_text(text, encoding="utf-8")
            answer = demo_agent.SOLVERS[day, phase](inputs[day])
            (folder / "answers" / f"{name}.txt").write_text(f"{answer}\n", encoding="utf-8")


def demo_agents() -> list[Agent]:
    """Return the scripted agents."""
    return [
        Agent(
            name=name,
            command=[sys.executable, demo_agent.__file__, "--mcp", "{mcp_config}", *options, "{prompt}"],
            model="scripted",
            version="demo",
        )
        for name, options in AGENTS.items()
    ]
