"""Plan: what happens to each server of a file: added, updated, left alone, removed or refused."""

from pathlib import Path

import pytest

from tests.support.plugins import write_distribution

from .desk import Desk, everything, servers


def test_a_server_of_the_same_name_that_is_not_ours_is_left_alone(desk: Desk) -> None:
    desk.cursor.parent.mkdir()
    desk.cursor.write_text('{"mcpServers": {"mercury": {"command": "thermometer"}}}', encoding="utf-8")
    before = everything(desk.home)

    installed = desk.install("cursor", "mercury")
    removed = desk.install("cursor", "mercury", "--remove")

    assert (installed.status, installed.out) == (1, "")
    assert "Choose another name with --name, or replace it with --force." in installed.err
    assert "left alone" in removed.out
    assert everything(desk.home) == before


def test_force_replaces_it_and_another_name_goes_beside_it(desk: Desk) -> None:
    desk.cursor.parent.mkdir()
    desk.cursor.write_text('{"mcpServers": {"mercury": {"command": "thermometer"}}}', encoding="utf-8")

    desk.install("cursor", "mercury", "--name", "mercury-llm")
    beside = servers(desk.cursor)
    desk.install("cursor", "mercury", "--force")
    desk.install("cursor", "--name", "mercury-llm", "--remove")

    assert beside["mercury"] == {"command": "thermometer"}
    assert beside["mercury-llm"]["args"] == ["mercury"]
    assert list(servers(desk.cursor)) == ["mercury"]
    assert servers(desk.cursor)["mercury"]["args"] == ["mercury"]


def test_removing_what_is_not_there_changes_nothing(desk: Desk) -> None:
    said = desk.install("cursor", "--remove")

    assert said.status == 0
    assert "bitburner  not there" in said.out
    assert everything(desk.home) == {}


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("https://b.example.com/", {"bitburner", "aoc", "mercury"}),
        ("https://b.example.com/mcp", {"bridgehead"}),
        ("https://b.example.com/tools/aoc/mcp/", {"aoc"}),
    ],
)
def test_an_address_is_a_host_of_bridges_or_one_server(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, names: set[str]
) -> None:
    # A plugin here says nothing about the server.
    code = "raise SystemExit('imported')"
    monkeypatch.syspath_prepend(write_distribution(tmp_path / "site", "weather", "weather", code))
    desk.install("cursor", "--url", url)
    written = servers(desk.cursor)
    desk.install("cursor", "--remove")

    assert set(written) == names
    assert all(str(entry["url"]).endswith("/mcp") for entry in written.values())
    assert not desk.cursor.exists()


def test_a_server_may_move_from_here_to_a_team_and_back(desk: Desk) -> None:
    desk.install("cursor", "aoc", environment={"AOC_YEAR": "2024"})
    desk.install("cursor", "aoc", "--url", "https://b.example.com")
    far = servers(desk.cursor)["aoc"]
    desk.install("cursor", "aoc")

    assert set(far) == {"url", "headers"}
    assert servers(desk.cursor)["aoc"] == {"type": "stdio", "command": str(desk.program), "args": ["aoc"]}
