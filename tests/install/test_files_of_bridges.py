"""A bridge in a file is installed by its path, which works from any folder."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.person import COMMAND, Person

from .desk import Desk, servers

SERVER = """
from bridgehead.mcp import Arguments, Bridge, Context

weather = Bridge("weather", "1")

@weather.tool("Say it.", read_only=True)
def say(args: Arguments, ctx: Context[None]) -> str:
    return "fine"
"""


@pytest.fixture
def server(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a bridge, in the folder that the person is in."""
    monkeypatch.chdir(desk.project)
    path = desk.project / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with an empty home."""
    return Person(tmp_path / "somebody")


@pytest.mark.parametrize("word", ["server.py", "./server.py", "server.py:weather"])
def test_the_entry_has_the_absolute_path_and_the_name_of_the_bridge(
    desk: Desk, server: Path, word: str
) -> None:
    said = desk.install("cursor", word)

    assert said.status == 0, said
    entry = servers(desk.cursor)["weather"]
    attribute = ":weather" if ":" in word else ""
    assert (entry["command"], entry["args"]) == (str(desk.program), [f"{server}{attribute}"])


def test_it_is_updated_and_removed_by_its_path_even_if_the_file_is_gone(desk: Desk, server: Path) -> None:
    desk.install("cursor", "server.py")
    again = desk.install("cursor", "server.py")
    server.unlink()
    removed = desk.install("cursor", "server.py", "--remove")

    assert "already there" in again.out
    assert "weather  removed" in removed.out
    assert not desk.cursor.exists()


def test_removing_a_file_that_was_not_installed_changes_nothing(desk: Desk, server: Path) -> None:
    said = desk.install("cursor", "server.py", "--remove")

    assert said.status == 0
    assert f"{server}  not there" in said.out


def test_a_bridge_in_a_file_does_not_replace_a_bridge_of_the_same_name(desk: Desk, server: Path) -> None:
    server.write_text(SERVER.replace('"weather"', '"aoc"'), encoding="utf-8")
    desk.install("cursor", "aoc")
    before = servers(desk.cursor)

    said = desk.install("cursor", "server.py")

    assert said.status == 1
    assert "There is a server named aoc that starts something else." in said.err
    assert servers(desk.cursor) == before


def test_a_file_without_a_bridge_or_that_is_missing_writes_nothing(desk: Desk, server: Path) -> None:
    server.write_text("x = 1\n", encoding="utf-8")

    said = [desk.install("cursor", word) for word in ("server.py", "missing.py")]

    assert [each.status for each in said] == [2, 2]
    assert "server.py has no Bridge or Manifest at its top level" in said[0].err
    assert "There is no file" in said[1].err
    assert not desk.cursor.exists()


def test_a_file_is_not_at_an_address(desk: Desk, server: Path) -> None:
    said = desk.install("cursor", str(server), "--url", "https://b.example.com")

    assert said.status == 2
    assert "--url goes with names of bridges, not with files" in said.err


def test_the_installed_command_starts_the_bridge_from_any_folder(person: Person, tmp_path: Path) -> None:
    (person.home / "server.py").write_text(SERVER, encoding="utf-8")
    done = person.run("install", "cursor", "server.py")
    assert done.returncode == 0, done.stderr
    entry = json.loads((person.home / ".cursor/mcp.json").read_text(encoding="utf-8"))["mcpServers"][
        "weather"
    ]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}

    served = subprocess.run(
        [entry["command"], *entry["args"]],
        cwd=tmp_path,
        env=person.environment(),
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert Path(entry["command"]).is_absolute()
    assert COMMAND.is_file()
    assert json.loads(served.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "weather"
