"""Fewer tools: whatever hides a tool of ours, no client reads of it, except in the refusal of its call."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridgehead.mcp import NEWEST_HANDSHAKE, Revision
from bridgehead.mcp.revisions import V2025_03_26, V2026_07_28
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge
from tests.bitburner.changes.test_differences import reload, until_noticed
from tests.bitburner.playing import FILES, played
from tests.support.checked import CheckedClient, connect
from tests.support.said import APPS, BRIDGES, gather, make_environment

ALLOWED = {
    "aoc": "record_speed,fetch_instruction",
    "bitburner": "read_file,write_file",
    "mercury": "mercury_chat_completion,mercury_decide",
}
MODES: dict[str, dict[str, str]] = {
    **{f"{name} core": {f"{name.upper()}_TOOLSETS": "core"} for name in BRIDGES},
    **{f"{name} allow": {"BRIDGEHEAD_ALLOW_TOOLS": tools} for name, tools in ALLOWED.items()},
    **{f"{name} one": {"BRIDGEHEAD_ALLOW_TOOLS": tools.split(",")[0]} for name, tools in ALLOWED.items()},
    "aoc read-only": {"BRIDGEHEAD_READ_ONLY": "1"},
    "bitburner read-only": {"BRIDGEHEAD_READ_ONLY": "1"},
    "bitburner its own read-only": {"BITBURNER_READ_ONLY": "1"},
    "mercury deny chat": {"BRIDGEHEAD_DENY_TOOLS": "mercury_chat_completion"},
    "mercury deny": {"BRIDGEHEAD_DENY_TOOLS": "mercury_list_models,mercury_chat_stream"},
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return make_environment(tmp_path)


async def read_all(client: CheckedClient, revision: Revision) -> tuple[set[str], str]:
    """Return the tools that a client is offered, and all that it reads of the bridge."""
    offered = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
    said: list[Any] = await gather(client, offered)
    if revision.stateless:
        said.append(await client.request("server/discover"))
    return set(offered), msgspec.json.encode(said).decode()


@pytest.mark.parametrize("revision", [V2025_03_26, V2026_07_28], ids=lambda one: one.name)
@pytest.mark.parametrize("mode", MODES)
async def test_nothing_that_is_sent_names_a_tool_that_is_not_offered(
    environment: dict[str, str], mode: str, revision: Revision
) -> None:
    bridge = mode.split(" ", maxsplit=1)[0]
    declared = make_bridge(plugins.load(bridge), environment).tools.keys()
    served = make_bridge(plugins.load(bridge), {**environment, **MODES[mode]})
    async with connect(served, revision=revision) as client:
        offered, said = await read_all(client, revision)

    hidden = declared - served.tools.keys()
    assert hidden
    assert offered < declared
    assert re.findall(rf"(?<!\w)(?:{'|'.join(hidden)})(?!\w)", said) == []
    # Every offered tool still says what it does.
    assert all(tool.description for tool in served.tools.values())


@pytest.mark.parametrize(
    ("settings", "tool", "reason"),
    [
        ({"BITBURNER_TOOLSETS": "core"}, "edit_file", "BITBURNER_TOOLSETS=core hides it."),
        ({"BITBURNER_TOOLSETS": "saves,edits"}, "list_servers", "BITBURNER_TOOLSETS=saves,edits hides it."),
        ({"BITBURNER_READ_ONLY": "1"}, "edit_file", "BITBURNER_READ_ONLY hides it."),
        ({"BRIDGEHEAD_READ_ONLY": "1"}, "edit_file", "BRIDGEHEAD_READ_ONLY hides it."),
        ({"BRIDGEHEAD_DENY_TOOLS": "edit_*"}, "edit_file", "BRIDGEHEAD_DENY_TOOLS hides it."),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "read_file"}, "edit_file", "BRIDGEHEAD_ALLOW_TOOLS does not name it."),
        (
            {"BRIDGEHEAD_READ_ONLY": "1", "BITBURNER_TOOL_PREFIX": "game_"},
            "game_edit_file",
            "BRIDGEHEAD_READ_ONLY hides it.",
        ),
    ],
)
async def test_a_call_of_a_hidden_tool_is_told_which_setting_hides_it(
    environment: dict[str, str], settings: dict[str, str], tool: str, reason: str
) -> None:
    served = make_bridge(plugins.load("bitburner"), {**environment, **settings})
    async with connect(served, revision=NEWEST_HANDSHAKE) as client:
        refused = await client.error("tools/call", {"name": tool, "arguments": {}})

    assert refused["message"] == f"Unknown tool: {tool}. {reason}"


async def test_the_core_tools_of_bitburner_look_definitions_up(environment: dict[str, str]) -> None:
    served = make_bridge(plugins.load("bitburner"), {**environment, "BITBURNER_TOOLSETS": "core"})
    async with connect(served, capabilities=APPS) as client:
        instructions = client.sent[0]["result"]["instructions"]

    assert "search_definitions" in served.tools
    assert "Look API functions up with search_definitions." in instructions


@pytest.mark.parametrize("setting", [{"AOC_TOOLSETS": "core"}, {"BRIDGEHEAD_READ_ONLY": "1"}])
async def test_what_is_left_of_the_texts_of_aoc_makes_sense(
    environment: dict[str, str], setting: dict[str, str]
) -> None:
    served = make_bridge(plugins.load("aoc"), {**environment, **setting})
    async with connect(served) as client:
        asked = {"name": "solve_day", "arguments": {"day": "2"}}
        (message,) = (await client.request("prompts/get", asked))["messages"]

    # Neither a clock nor an answer that nothing here takes.
    assert not re.search(r"server take the time|hand in|checked|checks", message["content"]["text"])
    assert not re.search(r"server's clock|hand in|checked|checks", served.instructions or "", re.IGNORECASE)
    assert "fetch_instruction returns the text" in message["content"]["text"]


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        ({}, "restore_file"),
        ({"BITBURNER_TOOL_PREFIX": "my_"}, "my_restore_file"),
        ({"BITBURNER_TOOLSETS": "core"}, None),
        ({"BITBURNER_TOOLSETS": "core", "BITBURNER_TOOL_PREFIX": "my_"}, None),
    ],
)
async def test_the_note_on_an_older_save_names_restore_file_as_it_is_offered(
    tmp_path: Path, settings: dict[str, Any], offered: str | None
) -> None:
    prefix = settings.get("BITBURNER_TOOL_PREFIX", "")
    async with played(tmp_path, **settings) as play:
        await play.ok(f"{prefix}write_file", filename="a.js", content="// new\n")
        await reload(play, dict(FILES["home"]))
        await until_noticed(play, 1)
        # The first is told of it beside its answer, the second has it as its answer.
        results = [await play.client.call(f"{prefix}{name}") for name in ("list_files", "connection_status")]

    for result in results:
        (note,) = result["structuredContent"]["notes"]
        assert "a.js is missing." in note
        assert set(re.findall(r"\w*restore_file", str(result))) == ({offered} if offered else set())
        assert note.endswith("several at once." if offered else "a.js is missing.")
