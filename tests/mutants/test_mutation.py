"""Mutation: one number switches one change on, and everything else stays as it was."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import __main__ as command
from tests.mutants.__main__ import LastTrial
from tests.mutants.mutation import VARIABLE, instrument
from tests.mutants.transplant import transplant
from tests.mutants.trial import Passage

SOURCE = '''
"""What it is about."""

from __future__ import annotations

from typing import Literal

Kind = Literal["small", "large"]
LIMIT = 60


class Box:
    def __init__(self):
        self.items = []

    def put(self, item: int | str, *, most=2):
        if len(self.items) < most and item:
            self.items.append(item)
            return True
        return False

    @property
    def kind(self):
        return "empty" if not self.items else f"of {self.items[0]}"


async def refuse(limit):
    if limit > LIMIT:
        raise ValueError("This is a sentence for people.")
'''


def changes() -> dict[str, int]:
    """Return the numbers of the mutants by what each changes."""
    _, mutants = instrument(SOURCE)
    return {mutant.change: mutant.number for mutant in mutants}


def run(change: str) -> dict[str, Any]:
    """Import the module with one change on."""
    code, mutants = instrument(SOURCE)
    number = next((mutant.number for mutant in mutants if mutant.change == change), 0)
    namespace: dict[str, Any] = {}
    exec(code.replace("int(_mutant_os.environ.get('MUTANT', '0'))", str(number)), namespace)  # noqa: S102
    assert namespace[VARIABLE] == number
    return namespace


def boxed(namespace: dict[str, Any], *items: object) -> Any:
    box = namespace["Box"]()
    return [box.put(item) for item in items], box.items, box.kind


def test_nothing_changes_while_no_mutant_is_on() -> None:
    namespace = run("none")
    assert boxed(namespace, 1, 0, 2, 3) == ([True, False, True, False], [1, 2], "of 1")
    assert boxed(namespace) == ([], [], "empty")
    assert namespace["__doc__"] == "What it is about."


@pytest.mark.parametrize(
    ("change", "shows"),
    [
        ("Box.put: `len(self.items) < most` → `len(self.items) <= most`", lambda m: boxed(m, 1, 2, 3)),
        (
            "Box.put: `len(self.items) < most and item` → `len(self.items) < most or item`",
            lambda m: boxed(m, 0),
        ),
        ("Box.put: without `self.items.append(item)`", lambda m: boxed(m, 1)),
        ("Box.put: `True` → `False`", lambda m: boxed(m, 1)),
        ("Box.put: `2` → `3`", lambda m: boxed(m, 1, 2, 3)),
        ("Box.kind: `not self.items` → `self.items`", lambda m: boxed(m, 1)),
        ("Box.kind: `'empty'` → `''`", boxed),
        ("Box.kind: `0` → `1`", lambda m: boxed(m, 1, 2)),
        ("module: `60` → `0`", lambda m: m["LIMIT"]),
        ("refuse: `limit > LIMIT` → `limit >= LIMIT`", lambda m: ending(m["refuse"](60))),
        (
            "refuse: without `raise ValueError('This is a sentence for people.')`",
            lambda m: ending(m["refuse"](61)),
        ),
    ],
)
def test_a_mutant_does_what_it_says(change: str, shows: Callable[[dict[str, Any]], object]) -> None:
    assert change in changes()
    assert shows(run(change)) != shows(run("none"))


def ending(coroutine: Any) -> str:
    """Run a coroutine that waits for nothing, and say how it ended."""
    try:
        coroutine.send(None)
    except (StopIteration, ValueError) as error:
        return type(error).__name__
    raise AssertionError


def test_annotations_docstrings_and_sentences_are_left_alone() -> None:
    assert not [change for change in changes() if "sentence" in change and "without" not in change]
    assert not [
        change for change in changes() if "int | str" in change or "about" in change or "small" in change
    ]


def test_only_what_acts_at_import_needs_a_process_of_its_own() -> None:
    _, mutants = instrument(SOURCE)
    assert {mutant.change for mutant in mutants if mutant.at_import} == {
        "module: `60` → `0`",
        "Box.put: `2` → `3`",
    }


def test_an_unchanged_module_notes_the_mutants_that_are_come_by() -> None:
    namespace = run("none")
    namespace[VARIABLE] = passage = Passage()
    box = namespace["Box"]()
    passage.take()
    assert box.put(0) is False

    numbers = set(passage.take()["numbers"])
    assert changes()["Box.put: `len(self.items) < most` → `len(self.items) <= most`"] in numbers
    assert changes()["Box.put: without `self.items.append(item)`"] not in numbers
    assert passage.take() == {"numbers": [], "has_started_process": False}


@pytest.mark.parametrize(
    ("change", "limit", "put"),
    [
        ("module: `60` → `0`", 0, [True, True, False]),
        ("Box.put: `2` → `3`", 60, [True, True, True]),
        ("none", 60, [True, True, False]),
    ],
)
def test_what_acts_at_import_is_put_into_a_module_that_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, limit: int, put: list[bool]
) -> None:
    (tmp_path / "box.py").write_text(instrument(SOURCE)[0])
    spec = importlib.util.spec_from_file_location("mutated_box", tmp_path / "box.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutated_box", module)
    spec.loader.exec_module(module)
    box = module.Box()
    monkeypatch.setenv("MUTANT", str(changes().get(change, 0)))

    assert transplant(module) == (change != "none")
    assert limit == module.LIMIT
    assert [box.put(number) for number in (1, 2, 3)] == put
    assert isinstance(box, module.Box)


def test_a_process_that_is_started_is_noted() -> None:
    passage = Passage()
    for event in ("open", "subprocess.Popen", "open"):
        passage.hear(event, ())

    assert passage.take()["has_started_process"]


def test_what_killed_a_mutant_holds_while_its_module_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    assert LastTrial("m", SOURCE).read() == {}
    LastTrial("m", SOURCE).write({1: "a test", 2: None})

    assert LastTrial("m", SOURCE).read() == {1: "a test", 2: None}
    assert LastTrial("m", SOURCE + "\n").read() == {}
    assert LastTrial("other", SOURCE).read() == {}
