"""Questions: whoever types fills in a form, each value until it fits; an end of input is no answer."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.waiting import PATIENCE

PROGRAM = """
import asyncio, json, sys
from rich.console import Console
from bridgehead.commands.questions import ask

print(json.dumps(asyncio.run(ask(Console(stderr=True), json.loads(sys.argv[1])))))
"""
FORM = {
    "message": "Who [is] it?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "colour": {"enum": ["red", "blue"]},
        },
        "required": ["name", "age"],
    },
}
PLAIN = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}


def answered(question: dict[str, Any], typed: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(question)],
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, done.stderr


def test_a_form_is_asked_value_by_value() -> None:
    answer, shown = answered(FORM, "Ada\n36\nred\n")

    assert answer == {"action": "accept", "content": {"name": "Ada", "age": 36, "colour": "red"}}
    assert shown == "Who [is] it?\nname (text): age (integer): colour (red|blue): "


def test_what_does_not_fit_is_asked_again_and_what_may_be_left_out_can_be() -> None:
    answer, shown = answered(FORM, "Ada\nold\n\n36\n\n")

    assert answer == {"action": "accept", "content": {"name": "Ada", "age": 36}}
    assert "age='old' is not valid. Expected age=integer.\n" in shown
    assert shown.count("age (integer): ") == 3


@pytest.mark.parametrize(
    ("typed", "action"),
    [("yes\n", "accept"), ("Y\n", "accept"), ("no\n", "decline"), ("\nwhat\nn\n", "decline"), ("", "cancel")],
)
def test_a_question_without_values_takes_a_yes_or_a_no(typed: str, action: str) -> None:
    answer, shown = answered(PLAIN, typed)

    assert answer["action"] == action
    assert shown.startswith("Sure?\nyes or no: ")


def test_a_form_whose_input_ends_is_not_answered() -> None:
    answer, _ = answered(FORM, "Ada\n")

    assert answer == {"action": "cancel"}
