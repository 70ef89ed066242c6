"""What a client would start is started by the doctor, and a dead entry is not called healthy."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.host_command import add_token, serving
from tests.support.person import COMMAND, Person


def examined(
    person: Person, servers: dict[str, Any], **settings: str
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Give Cursor some servers, and return what the doctor says of its clients."""
    (person.home / ".cursor").mkdir(exist_ok=True)
    file = person.home / ".cursor" / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    done = person.run("doctor", "aoc", "--json")
    assert done.stderr == ""
    return done.returncode, {one["what"]: one for one in json.loads(done.stdout)["clients"]}


def test_a_server_that_starts_is_said_to_answer(person: Person) -> None:
    entry = {"command": str(COMMAND), "args": ["aoc"], "env": {"AOC_DATA_DIR": "${env:AOC_DATA_DIR}"}}

    status, found = examined(person, {"aoc": entry})

    assert status == 0
    assert found["Cursor: aoc"]["text"].startswith("aocMCP 1.0.0 answers ")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            {"command": "/nowhere/bridgehead", "args": ["aoc"]},
            "cannot start /nowhere/bridgehead: ",
        ),
        ({"command": str(COMMAND), "args": ["aoc"], "env": {"AOC_YEAR": "soon"}}, "it ended with status 2"),
        (
            {"command": sys.executable, "args": ["-c", "print('hello')", "bridgehead", "aoc"]},
            "its answer is not MCP",
        ),
    ],
)
def test_a_dead_entry_is_wrong_and_says_how_to_replace_it(
    person: Person, entry: dict[str, Any], text: str
) -> None:
    status, found = examined(person, {"aoc": entry})

    assert (status, found["Cursor: aoc"]["verdict"]) == (1, "wrong")
    assert text in found["Cursor: aoc"]["text"]
    assert found["Cursor: aoc"]["advice"] == "Run `bridgehead install cursor aoc --force`."


def test_a_wrong_variable_of_the_shell_is_not_blamed_on_a_client(person: Person) -> None:
    (person.home / ".cursor").mkdir()
    entry = {"command": str(COMMAND), "args": ["aoc"]}
    (person.home / ".cursor" / "mcp.json").write_text(
        json.dumps({"mcpServers": {"aoc": entry}}), encoding="utf-8"
    )
    done = person.run("doctor", "aoc", "--json", AOC_YEAR="banana")
    report = json.loads(done.stdout)

    assert done.returncode == 1
    assert {each["what"]: each["verdict"] for each in report["clients"]}["Cursor: aoc"] == "right"
    assert report["aoc"][0]["advice"] == "Correct or unset AOC_YEAR in this shell's environment."


def test_a_server_elsewhere_is_reached_as_the_client_would(person: Person, tmp_path: Path) -> None:
    with serving(tmp_path / "host") as host:
        url = f"http://127.0.0.1:{host.port}/mcp"
        status, found = examined(person, {"bridgehead": {"url": url}})

    assert status == 0
    assert found["Cursor: bridgehead"]["text"].startswith(f"{url} answers; ")


def test_an_entry_whose_token_is_not_known_here_is_said_to_be_untried(person: Person, tmp_path: Path) -> None:
    add_token(tmp_path / "host", "alice")
    with serving(tmp_path / "host", BRIDGEHEAD_AUTH="on") as host:
        (person.home / ".cursor").mkdir()
        person.run("install", "cursor", "--url", f"http://127.0.0.1:{host.port}/mcp")
        done = person.run("doctor", "aoc")

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "No problems found. Not tried: Cursor: bridgehead."


def test_the_dead_entry_of_a_file_is_replaced_by_its_path(person: Person) -> None:
    path = str(person.home / "server.py")

    _, found = examined(person, {"weather": {"command": str(COMMAND), "args": [path]}})

    assert found["Cursor: weather"]["verdict"] == "wrong"
    assert found["Cursor: weather"]["advice"] == f"Run `bridgehead install cursor {path} --force`."
