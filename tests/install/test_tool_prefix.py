"""Prefixes: entries give tools a prefix where what reads the file may not keep servers apart."""

import pytest
from msgspec.structs import replace

from bridgehead.install import entries
from bridgehead.install.clients import CLIENTS
from bridgehead.runtime import plugins
from bridgehead.runtime.settings import Settings
from bridgehead.runtime.tool_filter import TOOL_PREFIX, prefix_setting

from . import stand_ins
from .desk import Desk, servers


class Aoc(stand_ins.Aoc):
    tool_prefix = prefix_setting("AOC_TOOL_PREFIX", "aoc_")


@pytest.fixture(autouse=True)
def prefixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bridge with a setting for its prefix, beside others without."""
    monkeypatch.setitem(stand_ins.BRIDGES, "aoc", replace(stand_ins.BRIDGES["aoc"], settings=Aoc))


def test_a_file_that_any_program_may_read_has_the_prefix_and_the_output_says_so(desk: Desk) -> None:
    said = desk.install("mcp.json")

    written = servers(desk.project / "mcp.json")
    assert written["aoc"]["env"] == {"AOC_TOOL_PREFIX": "aoc_"}
    assert "env" not in written["bitburner"]
    assert "Tools of aoc begin with aoc_ (AOC_TOOL_PREFIX)." in said.out
    assert "already there" in desk.install("mcp.json").out


@pytest.mark.parametrize("client", [client.id for client in CLIENTS if not client.prefix_tools])
def test_a_client_that_keeps_servers_apart_has_none(desk: Desk, client: str) -> None:
    said = desk.install(client, "aoc", "--dry-run")

    assert said.status == 0
    assert "TOOL_PREFIX" not in said.out


def test_the_prefix_can_be_had_anywhere_and_left_out(desk: Desk) -> None:
    desk.install("cursor", "aoc", "--prefix-tools")
    desk.install("mcp.json", "aoc", "--no-prefix-tools")

    assert servers(desk.cursor)["aoc"]["env"] == {"AOC_TOOL_PREFIX": "aoc_"}
    assert "env" not in servers(desk.project / "mcp.json")["aoc"]


def test_a_prefix_of_the_users_own_stays(desk: Desk) -> None:
    path = desk.project / "mcp.json"
    desk.install("mcp.json", "aoc", environment={"AOC_TOOL_PREFIX": "elf-"})
    assert servers(path)["aoc"]["env"] == {"AOC_TOOL_PREFIX": "elf-"}

    desk.install("mcp.json", "aoc")
    assert servers(path)["aoc"]["env"] == {"AOC_TOOL_PREFIX": "elf-"}


def test_a_prefix_that_cannot_work_is_not_written(desk: Desk) -> None:
    said = desk.install("mcp.json", "aoc", environment={"AOC_TOOL_PREFIX": "two words"})

    assert said.status == 2
    assert "AOC_TOOL_PREFIX is 'two words'" in said.err
    assert not (desk.project / "mcp.json").exists()


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("elves", "elves_"), ("my-aoc", "my_aoc_"), ("2024", "_2024_"), ("n" * 64, "n" * 20 + "_")],
)
def test_two_servers_of_one_bridge_have_different_prefixes(desk: Desk, name: str, prefix: str) -> None:
    desk.install("mcp.json", "aoc", "--name", name)

    assert servers(desk.project / "mcp.json")[name]["env"] == {"AOC_TOOL_PREFIX": prefix}
    assert TOOL_PREFIX.parse(prefix) == prefix


def test_a_server_of_a_team_names_its_tools_itself(desk: Desk) -> None:
    said = desk.install("mcp.json", "--url", "https://b.example.com/mcp")

    assert "set BRIDGEHEAD_TOOL_PREFIX" in said.out


@pytest.mark.parametrize("bridge", plugins.built_in_names())
def test_each_of_our_bridges_has_the_setting(bridge: str) -> None:
    settings: type[Settings] = plugins.load(bridge).settings
    needs = entries.read_server_environment(settings, {})

    assert entries.add_tool_prefix(needs, settings, bridge, None) == f"{bridge.upper()}_TOOL_PREFIX"
    assert needs.variables == {f"{bridge.upper()}_TOOL_PREFIX": f"{bridge}_"}
