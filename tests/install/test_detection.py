"""Detection: which clients are on a machine, and which of our bridges each has."""

import json
from pathlib import Path

from bridgehead.install.detection import DetectedClient, detect_clients
from bridgehead.install.machine import Machine


def detected(folder: Path) -> dict[tuple[str, str], DetectedClient]:
    for name in ("home", "project"):
        (folder / name).mkdir(exist_ok=True)
    machine = Machine("linux", str(folder / "home"), str(folder / "project"), {})
    return {(one.client.id, one.scope): one for one in detect_clients(machine)}


def test_on_a_bare_machine_no_client_is_there(tmp_path: Path) -> None:
    found = detected(tmp_path)

    assert not any(one.is_installed for one in found.values())
    assert {scope for _, scope in found} == {"user"}


def test_a_client_is_there_with_the_bridges_that_it_has(tmp_path: Path) -> None:
    ours = {"command": "bridgehead", "args": ["aoc"]}
    other = {"command": "other", "args": []}
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"aoc": ours, "mercury": other}}))
    cursor = detected(tmp_path)["cursor", "user"]

    assert (cursor.is_installed, cursor.bridges, cursor.path) == (True, ("aoc",), file)
    assert cursor.problem == ""


def test_a_file_that_is_broken_is_a_problem_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": ')

    assert detected(tmp_path)["cursor", "user"].problem.startswith("broken at 1:")


def test_in_the_home_directory_a_file_of_the_user_is_not_one_of_the_project_too(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{}")
    found = list(detect_clients(Machine("linux", str(tmp_path), str(tmp_path), {})))

    assert [one.scope for one in found if one.client.id == "cursor"] == ["user"]
