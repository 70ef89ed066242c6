"""The judge of `make agents`: what a server said, and its model was not shown, is a problem."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.far_sides import FarSides
from tests.agents.scenarios import STEPS, judge
from tests.support.fake_model import Turn

NOTE = "Is this right? 0 ms is less than any solution takes."
PLACE = next(place for place, step in enumerate(STEPS) if (step.bridge, step.scenario) == ("aoc", "warning"))


def judge_warning(folder: Path, blocks: list[str], structure: dict[str, Any], shown: str) -> list[str]:
    """Return the problems of aoc's warning, with this answer of the server and this view of it."""
    for bridge in ("aoc", "bitburner", "mercury"):
        answers = sum(step.bridge == bridge for step in STEPS)
        result = {"content": [{"type": "text", "text": text} for text in blocks]}
        lines: list[Any] = []
        for number in range(answers):
            answer = {"id": number, "result": {**result, "structuredContent": structure}}
            lines += [["in", json.dumps({"id": number, "method": "tools/call"})], ["out", json.dumps(answer)]]
        (folder / f"{bridge}.log").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    calls = [step.call.tool for step in STEPS]
    turn = Turn("anthropic", {}, 0, [], calls, [shown] * len(STEPS), "")
    return judge([turn], FarSides([], folder))[PLACE].problems


@pytest.mark.parametrize(
    ("blocks", "structure"),
    [
        (["Recorded."], {"stdev": None, "notes": [NOTE]}),
        (["Recorded.", f"Note: {NOTE}"], {"stdev": None}),
        (["Recorded.", f"Note: {NOTE}"], {"stdev": None, "notes": [NOTE]}),
    ],
    ids=["structure", "text", "both"],
)
def test_a_note_in_either_part_must_be_shown(
    tmp_path: Path, blocks: list[str], structure: dict[str, Any]
) -> None:
    as_text, as_structure = "\n".join(blocks), json.dumps(structure)
    missing = f"missing: {NOTE}"

    for shown in (as_text, as_structure):
        problems = judge_warning(tmp_path, blocks, structure, shown)
        assert (missing in problems) == (NOTE not in shown)


def test_the_cost_must_be_shown_as_a_line_or_as_numbers(tmp_path: Path) -> None:
    blocks = ["Recorded.", f"Note: {NOTE}\nCost: $0.01. Left of the budget: $1.00 for the day."]
    structure = {"stdev": None, "notes": [NOTE], "metadata": {"cost_usd": 0.01}}

    for shown in ("\n".join(blocks), json.dumps(structure)):
        assert judge_warning(tmp_path, blocks, structure, shown) == []
    assert judge_warning(tmp_path, blocks, structure, NOTE) == ["missing: the cost"]


def test_an_answer_without_notes_shows_nothing(tmp_path: Path) -> None:
    problems = judge_warning(tmp_path, ["Recorded."], {"stdev": None}, "Recorded.")

    assert problems == ["the server's answer has neither notes nor next steps"]
