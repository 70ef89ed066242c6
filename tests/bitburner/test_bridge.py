"""The declaration: the tools as clients list them, what that costs a model, and what a start loads."""

import json
from pathlib import Path

import msgspec

from bridgehead.bitburner.bridge import make_bridge
from bridgehead.bitburner.settings import BitburnerSettings
from tests.bitburner.playing import bridged, settings
from tests.mcp.test_imports import FORBIDDEN, foundation, probed
from tests.support.tool_cost import assert_lean

SNAPSHOT = Path(__file__).with_name("tools.json")
SEED = {
    "list_files": ({"server"}, set()),
    "read_file": ({"filename", "server"}, {"filename"}),
    "write_file": ({"filename", "content", "server"}, {"filename", "content"}),
    "delete_file": ({"filename", "server"}, {"filename"}),
    "get_all_files": ({"server"}, set()),
    "calculate_ram": ({"filename", "server"}, {"filename"}),
    "get_netscript_definitions": (set(), set()),
}
BUDGETS = {
    "connection_status": 290,
    "list_files": 150,
    "read_file": 280,
    "get_all_files": 360,
    "search_files": 340,
    "write_file": 370,
    "delete_file": 220,
    "edit_file": 370,
    "restore_file": 510,
    "calculate_ram": 170,
    "get_netscript_definitions": 150,
    "search_definitions": 260,
    "list_servers": 200,
    "get_file_metadata": 280,
    "backup_save": 180,
}
PROBE = """
import runpy, sys
def look(event, args):
    if event == "import" and args[0] == "bridgehead.mcp.process":
        sys.stderr.write(" ".join(sys.modules) + "\\n"); sys.stderr.flush()
sys.addaudithook(look)
sys.argv = ["bridgehead", "bitburner"]
runpy.run_module("bridgehead", run_name="__main__")
"""
FURTHER = {
    "dataclasses",
    "inspect",
    "logging",
    "pathlib",
    "re",
    "filelock",
    "rich",
    "ssl",
    "socket",
    "hashlib",
}
"""Modules that a bridge could easily load too early, beyond those that the engine's test names."""
ALLOWED = {"select", "signal", "bisect", "_bisect", "runpy", "importlib.util", "importlib._abc"}
"""What the engine and the counters need; the last three are the probe's own."""


async def test_the_tools_are_those_of_the_snapshot(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        listed = (await play.client.request("tools/list"))["tools"]

    assert msgspec.json.format(msgspec.json.encode(listed), indent=1).decode() + "\n" == SNAPSHOT.read_text(
        encoding="utf-8"
    ), "a tool's declaration has changed: read the difference, and write it to tools.json if it is meant"


async def test_the_seven_tools_keep_their_names_inputs_and_defaults() -> None:
    tools = {tool["name"]: tool for tool in json.loads(SNAPSHOT.read_text(encoding="utf-8"))}

    for name, (properties, required) in SEED.items():
        schema = tools[name]["inputSchema"]
        assert properties <= set(schema.get("properties", {}))
        assert set(schema.get("required", [])) == required
        assert schema["additionalProperties"] is False
        if "server" in properties:
            assert schema["properties"]["server"]["default"] == "home"


async def test_the_list_of_tools_stays_small_for_a_model(tmp_path: Path) -> None:
    await assert_lean(make_bridge(settings(tmp_path)), BUDGETS)


def test_tools_with_huge_answers_point_to_those_that_search() -> None:
    tools = make_bridge(BitburnerSettings({})).tools

    assert "search_definitions" in tools["get_netscript_definitions"].description
    assert "search_files" in tools["get_all_files"].description


def test_a_start_loads_nothing_dear_before_its_first_answer() -> None:
    loaded = probed("-c", PROBE) - foundation()

    assert loaded & {"bridgehead.bitburner.serve", "bridgehead.bitburner.bridge"}
    assert loaded & {*FORBIDDEN, *FURTHER} == set()
    assert {name for name in loaded if not name.startswith("bridgehead")} <= ALLOWED
