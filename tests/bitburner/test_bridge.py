"""The declaration: the tools as clients list them, what that costs a model, and what a start loads."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from bridgehead.bitburner.bridge import far_side, make_bridge, manifest
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.runtime.metrics import Metrics
from tests.bitburner.playing import bridged, played, settings
from tests.support.game import Game
from tests.support.tool_cost import assert_carried

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
MOST_BYTES = 18_000
"""What every conversation may carry of this bridge."""


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
    bridge = make_bridge(settings(tmp_path))

    await assert_carried(bridge, MOST_BYTES)


def test_tools_with_huge_answers_point_to_those_that_search() -> None:
    tools = make_bridge(BitburnerSettings({})).tools

    assert "search_definitions" in tools["get_netscript_definitions"].description
    assert "search_files" in tools["get_all_files"].description


def test_a_host_is_told_to_serve_it_in_one_process(tmp_path: Path) -> None:
    given = manifest.settings({"BRIDGEHEAD_STATE_DIR": str(tmp_path)})

    assert manifest.make(given, Metrics()).info.name == "bitburner"
    assert manifest.single_process.startswith("A game connects to one process only")


async def test_a_game_is_there_when_it_has_dialled_in(tmp_path: Path) -> None:
    assert far_side(None).detail == "The port is not open yet."

    async with bridged(tmp_path) as play:
        missing = far_side(play.session)
        assert not missing.is_up
        assert "Options → Remote API" in missing.detail

    async with played(tmp_path) as play:
        found = far_side(play.session)
        assert (found.is_up, found.detail) == (
            True,
            "A game is connected, from https://bitburner-official.github.io.",
        )


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("edit_file", {"filename": "hack.js", "old_text": "nowhere at all", "new_text": "x"}, "read_file"),
        ("move_file", {"filename": "hack.js", "to": "notes.txt"}, "restore_file"),
        ("restore_file", {"filename": "none.js"}, "restore_file"),
        ("list_files", {"server": ""}, "list_servers"),
    ],
)
async def test_with_a_prefix_a_failure_names_the_tools_that_the_client_has(
    tmp_path: Path, tool: str, arguments: dict[str, str], named: str
) -> None:
    async with played(tmp_path, BITBURNER_TOOL_PREFIX="my_") as play:
        text, problem = await play.fails(f"my_{tool}", **arguments)

    assert f"my_{named}" in text
    assert f"my_{named}" in problem["next_step"]
    assert not re.search(rf"\b{named}", text)


async def test_with_a_prefix_the_scripts_of_the_game_stay_as_they_are(tmp_path: Path) -> None:
    script = "export async function main(ns) { read_file('read_file'); }\n"
    game = Game(3, {"home": {"a.js": script}})
    async with played(tmp_path, game=game, BITBURNER_TOOL_PREFIX="my_") as play:
        text, _ = await play.ok("my_read_file", filename="a.js")
        prompt = await play.client.request(
            "prompts/get", {"name": "slim_script", "arguments": {"filename": "a.js"}}
        )

    said = prompt["messages"][0]["content"]["text"]
    assert text == script
    assert script in said
    assert "Change the file with my_edit_file" in said
