"""A project that `bridgehead new` made works as it is, without a network."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bridgehead.commands.new import choose_names, list_next_steps
from tests.support.person import Person
from tests.support.waiting import PATIENCE


def make(person: Person, name: str = "my-notes") -> Path:
    done = person.run("new", name)
    assert (done.returncode, done.stderr) == (0, "")
    return person.home / f"{name}-bridge"


def test_its_tests_pass_as_generated_and_offline(person: Person) -> None:
    project = make(person)

    done = subprocess.run(
        ["make", "test"],
        cwd=project,
        env={**person.environment(), "PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "Ran 1 test" in done.stderr


def test_the_bridge_is_short_and_plain(person: Person) -> None:
    project = make(person)
    bridge = (project / "src/my_notes_bridge/bridge.py").read_text(encoding="utf-8")
    check = (project / "tests/test_bridge.py").read_text(encoding="utf-8")

    assert len(bridge.splitlines()) <= 45
    assert len([line for line in check.splitlines() if line.strip()]) <= 10
    assert [word for word in ("Arguments", "Context", "FarSide") if word in bridge + check] == []


def test_every_file_is_what_it_says(person: Person) -> None:
    project = make(person)

    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["entry-points"]["bridgehead.bridges"] == {
        "my-notes": "my_notes_bridge.bridge:manifest"
    }
    registry = json.loads((project / "server.json").read_text(encoding="utf-8"))
    (package,) = registry["packages"]
    assert package["identifier"] == "my-notes-bridge"
    # uvx starts the script that has the name of the distribution, and hands on nothing that is not here.
    assert not {"runtimeArguments", "packageArguments"} & {*package}
    assert settings["project"]["scripts"] == {"my-notes-bridge": "my_notes_bridge.__main__:main"}
    readme = (project / "README.md").read_text(encoding="utf-8")
    assert f"mcp-name: {registry['name']}\n" in readme
    assert "${{ matrix.os }}" in (project / ".github/workflows/test.yml").read_text(encoding="utf-8")
    assert "$" not in (project / "README.md").read_text(encoding="utf-8")
    assert "local.mk" in (project / ".gitignore").read_text(encoding="utf-8")


def register(project: Path, site: Path) -> str:
    """Register the bridge as an installer would, without one; return the path to find both."""
    installed = site / "my_notes_bridge-0.1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Name: my-notes-bridge\nVersion: 0.1.0\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text(
        "[bridgehead.bridges]\nmy-notes = my_notes_bridge.bridge:manifest\n", encoding="utf-8"
    )
    return os.pathsep.join((str(site), str(project / "src")))


def test_its_own_command_serves_it(person: Person, tmp_path: Path) -> None:
    path = register(make(person), tmp_path / "site")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

    done = subprocess.run(
        [sys.executable, "-m", "my_notes_bridge"],
        env=person.environment(PYTHONPATH=path),
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "my-notes"


def test_the_installed_bridge_is_a_bridge_like_any_other(person: Person, tmp_path: Path) -> None:
    path = register(make(person), tmp_path / "site")

    done = person.run("call", "my-notes", "read_note", "name=welcome", PYTHONPATH=path)

    assert done.returncode == 0, done.stderr
    assert "Edit src/my_notes_bridge/bridge.py" in done.stdout


@pytest.mark.parametrize("name", ["Weather", "1st", "a_b", "-x", "aoc", "doctor", "", "x" * 41])
def test_a_name_that_cannot_be_one_is_refused(person: Person, name: str) -> None:
    done = person.run("new", "--", name)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert not list(person.home.glob("*-bridge"))


def test_nothing_is_written_over(person: Person) -> None:
    folder = person.home / "mine"
    folder.mkdir()
    (folder / "README.md").write_text("mine", encoding="utf-8")

    done = person.run("new", "weather", str(folder))

    assert done.returncode == 1
    assert "already exists" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["README.md"]


def test_the_python_that_has_bridgehead_is_named_for_make(person: Person) -> None:
    named = (make(person) / "local.mk").read_text(encoding="utf-8")

    assert named == f"PYTHON := {Path(sys.executable).as_posix()}\n"


@pytest.mark.parametrize(
    ("is_windows", "shown"), [(True, "py -m pip install --editable ."), (False, "make test")]
)
def test_the_next_steps_are_those_of_the_system(shown: str, *, is_windows: bool) -> None:
    names = choose_names("my-notes")
    steps = list_next_steps(Path("my-notes-bridge"), names, is_windows=is_windows)

    assert shown in steps
    assert ("make " in steps) is not is_windows
    assert "bridgehead call my-notes read_note name=welcome" in steps
