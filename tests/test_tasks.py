"""The verbs for machines without make are those of the Makefile, and do the same."""

import re
import sys
from pathlib import Path

import pytest

import tasks

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")


def recipe(verb: str) -> tuple[str, list[list[str]]]:
    """Read what a verb of the Makefile says of itself, and the programs of .venv that it runs."""
    found = re.search(rf"^{verb}:.*?## (.*)\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    assert found, f"the Makefile has no {verb}"
    lines = found[2].replace("$(CODE)", " ".join(tasks.CODE)).splitlines()
    return found[1], [line.strip().removeprefix("$(BIN)/").split() for line in lines]


@pytest.mark.parametrize("verb", tasks.VERBS)
def test_a_verb_does_what_it_does_with_make(verb: str) -> None:
    assert tasks.VERBS[verb] == recipe(verb)


def test_an_unknown_verb_shows_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks.main(["tset"]) == 2
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines()] == [*tasks.VERBS, "clean"]


def test_a_verb_runs_its_commands_up_to_the_first_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "set_up", lambda: None)
    monkeypatch.setattr(
        tasks, "BIN", Path(sys.executable).parent
    )  # these tests may run in another environment
    failing = [["python", "-c", "raise SystemExit(3)"], ["python", "-c", "raise SystemExit(4)"]]
    monkeypatch.setitem(tasks.VERBS, "check", ("", failing))

    assert tasks.main(["setup", "check"]) == 3
