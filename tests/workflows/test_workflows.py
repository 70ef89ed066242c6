"""The files of a public CI: they run what exists, on what the classifiers promise."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import tasks
from tests.pythons.__main__ import promised

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github"
WORKFLOWS = sorted((FOLDER / "workflows").glob("*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_gate_runs_on_every_promised_system_and_python() -> None:
    matrix = read(FOLDER / "workflows" / "gate.yml")["jobs"]["gate"]["strategy"]["matrix"]

    assert matrix == {"os": ["ubuntu-latest", "macos-latest", "windows-latest"], "python": promised()}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_verbs_and_files_that_exist(path: Path) -> None:
    steps = [step for job in read(path)["jobs"].values() for step in job["steps"]]
    commands = [shlex.split(line) for step in steps for line in step.get("run", "").split("\n")]
    ours = [words for words in commands if words and words[0] in ("make", "python", ".ci/run")]

    assert ours
    for words in ours:
        assert (ROOT / words[0]).is_file() or words[2 if words[0] == "python" else 1] in tasks.VERBS


def test_what_is_renewed_monthly_is_where_it_is_looked_for() -> None:
    needed = {"github-actions": ".github/workflows", "docker": "Dockerfile", "npm": "package.json"}
    for entry in read(FOLDER / "dependabot.yml")["updates"]:
        assert (ROOT / entry["directory"].strip("/") / needed[entry["package-ecosystem"]]).exists()


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_a_form_for_an_issue_asks_for_at_least_one_thing(name: str) -> None:
    form = read(FOLDER / "ISSUE_TEMPLATE" / f"{name}.yml")
    fields = [field for field in form["body"] if field["type"] != "markdown"]

    assert {"name", "description", "body"} <= form.keys()
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)
