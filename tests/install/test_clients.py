"""Each client: where its file is on every system, and what is written into it."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bridgehead.install import files
from bridgehead.install.clients import BY_ID, CLIENTS, Scope
from bridgehead.install.machine import Machine
from tests.support.posix import is_private

from .desk import Desk
from .stand_ins import KEY

POSIX = "/u/ada"
WINDOWS = r"D:\People\ada"
DESKTOP = "claude_desktop_config.json"
PLACES: dict[str, tuple[str, str, str]] = {
    "claude-desktop": (
        f"/u/ada/.config/Claude/{DESKTOP}",
        f"/u/ada/Library/Application Support/Claude/{DESKTOP}",
        rf"D:\People\ada\AppData\Roaming\Claude\{DESKTOP}",
    ),
    "claude-code": ("/u/ada/.claude.json", "/u/ada/.claude.json", r"D:\People\ada\.claude.json"),
    "cursor": ("/u/ada/.cursor/mcp.json", "/u/ada/.cursor/mcp.json", r"D:\People\ada\.cursor\mcp.json"),
    "vscode": (
        "/u/ada/.config/Code/User/mcp.json",
        "/u/ada/Library/Application Support/Code/User/mcp.json",
        r"D:\People\ada\AppData\Roaming\Code\User\mcp.json",
    ),
    "windsurf": (
        "/u/ada/.codeium/windsurf/mcp_config.json",
        "/u/ada/.codeium/windsurf/mcp_config.json",
        r"D:\People\ada\.codeium\windsurf\mcp_config.json",
    ),
    "zed": (
        "/u/ada/.config/zed/settings.json",
        "/u/ada/.config/zed/settings.json",
        r"D:\People\ada\AppData\Roaming\Zed\settings.json",
    ),
    "gemini": (
        "/u/ada/.gemini/settings.json",
        "/u/ada/.gemini/settings.json",
        r"D:\People\ada\.gemini\settings.json",
    ),
    "codex": ("/u/ada/.codex/config.toml", "/u/ada/.codex/config.toml", r"D:\People\ada\.codex\config.toml"),
}
PROJECTS = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "gemini": ".gemini/settings.json",
    "codex": ".codex/config.toml",
    "mcp.json": "mcp.json",
}
URL = "https://bridges.example.com/mercury/mcp"
WRITTEN: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "claude-desktop": ({}, None),
    "claude-code": (
        {"type": "stdio", "env": {"MERCURY_API_KEY": "${MERCURY_API_KEY}"}},
        {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${BRIDGEHEAD_TOKEN}"}},
    ),
    "cursor": (
        {"type": "stdio", "env": {"MERCURY_API_KEY": "${env:MERCURY_API_KEY}"}},
        {"url": URL, "headers": {"Authorization": "Bearer ${env:BRIDGEHEAD_TOKEN}"}},
    ),
    "vscode": (
        {"type": "stdio", "env": {"MERCURY_API_KEY": "${env:MERCURY_API_KEY}"}},
        {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${env:BRIDGEHEAD_TOKEN}"}},
    ),
    "windsurf": (
        {"env": {"MERCURY_API_KEY": "${env:MERCURY_API_KEY}"}},
        {"serverUrl": URL, "headers": {"Authorization": "Bearer ${env:BRIDGEHEAD_TOKEN}"}},
    ),
    "zed": ({}, {"url": URL}),
    "gemini": (
        {"env": {"MERCURY_API_KEY": "${MERCURY_API_KEY}"}},
        {"httpUrl": URL, "headers": {"Authorization": "Bearer ${BRIDGEHEAD_TOKEN}"}},
    ),
    "codex": ({"env_vars": ["MERCURY_API_KEY"]}, {"url": URL, "bearer_token_env_var": "BRIDGEHEAD_TOKEN"}),
    "mcp.json": (
        {"env": {"MERCURY_API_KEY": "${MERCURY_API_KEY}"}},
        {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${BRIDGEHEAD_TOKEN}"}},
    ),
}
IDS = [client.id for client in CLIENTS]


def written(path: Path, client: str) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    return dict(data[BY_ID[client].section])


@pytest.mark.parametrize("client", PLACES)
def test_the_file_of_a_user_is_where_the_client_looks_for_it(client: str) -> None:
    worlds = [
        Machine("linux", POSIX, "/p", {}),
        Machine("darwin", POSIX, "/p", {}),
        Machine("win32", WINDOWS, "D:/p", {}),
    ]

    found = tuple(str(BY_ID[client].places(machine, "user")[-1]) for machine in worlds)

    assert found == PLACES[client]


@pytest.mark.parametrize("client", PROJECTS)
def test_the_file_of_a_project_is_in_its_folder(client: str) -> None:
    linux, windows = Machine("linux", POSIX, "/srv/shop", {}), Machine("win32", WINDOWS, r"D:\shop", {})

    assert [str(path) for path in BY_ID[client].places(linux, "project")] == [f"/srv/shop/{PROJECTS[client]}"]
    assert [path.as_posix() for path in BY_ID[client].places(windows, "project")] == [
        f"D:/shop/{PROJECTS[client]}"
    ]


def test_only_these_clients_have_files_in_projects() -> None:
    assert {client.id for client in CLIENTS if "project" in client.scopes} == set(PROJECTS)


@pytest.mark.parametrize(
    ("client", "platform", "environment", "place"),
    [
        ("zed", "linux", {"XDG_CONFIG_HOME": "/x/conf"}, "/x/conf/zed/settings.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "conf"}, "/u/ada/.config/zed/settings.json"),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "/x/conf"}, "/u/ada/.config/zed/settings.json"),
        ("codex", "linux", {"CODEX_HOME": "/x/codex"}, "/x/codex/config.toml"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/x/claude"}, "/x/claude/.claude.json"),
        ("vscode", "win32", {"APPDATA": "E:/roam"}, "E:/roam/Code/User/mcp.json"),
        ("cursor", "freebsd14", {}, "/u/ada/.cursor/mcp.json"),
    ],
)
def test_variables_that_move_a_file_are_followed(
    client: str, platform: str, environment: dict[str, str], place: str
) -> None:
    machine = Machine(platform, WINDOWS if platform == "win32" else POSIX, "/p", environment)

    assert BY_ID[client].places(machine, "user")[-1].as_posix() == place


def test_a_packaged_claude_desktop_on_windows_is_found_in_its_own_folder(tmp_path: Path) -> None:
    machine = Machine("win32", WINDOWS, "D:/p", {})
    patterns = BY_ID["claude-desktop"].places(machine, "user")
    here = [tmp_path.joinpath(*pattern.parts[1:]) for pattern in patterns]
    here[1].parent.mkdir(parents=True)
    plain = files.choose(here)
    packaged = Path(str(here[0]).replace("*", "pzs8sxrjxfjjc"))
    packaged.parent.mkdir(parents=True)

    assert plain == here[1]
    assert files.choose(here) == packaged


@pytest.mark.parametrize("client", IDS)
def test_a_server_that_the_client_starts_is_written_as_it_wants_it(desk: Desk, client: str) -> None:
    path = desk.project / f"file{'.toml' if client == 'codex' else '.json'}"

    desk.install(client, "mercury", "--path", str(path), environment={"MERCURY_API_KEY": KEY})

    wanted = {"command": str(desk.program), "args": ["mercury"]} | WRITTEN[client][0]
    assert written(path, client) == {"mercury": wanted}
    assert KEY not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("client", [client for client in IDS if WRITTEN[client][1] is not None])
def test_a_server_that_a_team_runs_is_written_with_its_token_by_name(desk: Desk, client: str) -> None:
    path = desk.project / f"file{'.toml' if client == 'codex' else '.json'}"
    environment = {"BRIDGEHEAD_TOKEN": KEY}

    said = desk.install(
        client,
        "mercury",
        "--url",
        "https://bridges.example.com",
        "--path",
        str(path),
        environment=environment,
    )

    assert written(path, client) == {"mercury": WRITTEN[client][1]}
    assert "BRIDGEHEAD_TOKEN" in said.out
    assert KEY not in said.out + path.read_text(encoding="utf-8")


@pytest.mark.parametrize("client", IDS)
def test_a_secret_is_written_only_on_demand_and_then_named(desk: Desk, client: str) -> None:
    path = desk.project / f"file{'.toml' if client == 'codex' else '.json'}"

    said = desk.install(
        client, "mercury", "--path", str(path), "--write-secrets", environment={"MERCURY_API_KEY": KEY}
    )

    assert written(path, client)["mercury"]["env"] == {"MERCURY_API_KEY": KEY}
    assert "MERCURY_API_KEY is written into the file" in said.out
    assert KEY not in said.out
    assert is_private(path)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_each_scope_has_its_file(desk: Desk, scope: Scope) -> None:
    said = desk.install("vscode", "aoc", "--scope", scope)

    user, project = desk.home / ".config/Code/User/mcp.json", desk.project / ".vscode/mcp.json"
    assert said.status == 0
    assert (user.exists(), project.exists()) == (scope == "user", scope == "project")
