"""Offering: each bridge, as the real process, shows only those tools that it may."""

import os
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge
from tests.support.messages import call, request
from tests.support.person import COMMAND, Person
from tests.support.stdio_peer import Peer

WRITING = {
    "aoc": {"record_speed", "withdraw_record", "start_attempt", "finish_attempt"},
    "bitburner": {
        "write_file",
        "write_files",
        "delete_file",
        "edit_file",
        "move_file",
        "restore_file",
        "backup_save",
    },
    "mercury": set(),
}


def served(person: Person, bridge: str, asked: list[Any], **settings: str) -> list[Any]:
    """Ask a bridge, as a process, and give its answers."""
    their_input, outgoing = os.pipe()
    incoming, their_output = os.pipe()
    process = subprocess.Popen(
        [COMMAND, bridge],
        stdin=their_input,
        stdout=their_output,
        stderr=subprocess.DEVNULL,
        cwd=person.home,
        env=person.environment(**settings),
    )
    os.close(their_input)
    os.close(their_output)
    peer = Peer(process, outgoing, incoming)
    try:
        peer.shake_hands()
        return [peer.ask(one) for one in asked]
    finally:
        peer.dispose()


def names(person: Person, bridge: str, **settings: str) -> set[str]:
    (listed,) = served(person, bridge, [request("tools/list")], **settings)
    return {tool["name"] for tool in listed["result"]["tools"]}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


@pytest.mark.parametrize("bridge", WRITING)
def test_read_only_hides_exactly_what_writes(person: Person, bridge: str) -> None:
    everything = names(person, bridge)

    assert WRITING[bridge] <= everything
    assert names(person, bridge, BRIDGEHEAD_READ_ONLY="1") == everything - WRITING[bridge]


def test_what_is_hidden_cannot_be_called(person: Person) -> None:
    asked = request(
        "tools/call", call("record_speed", {"day": 1, "phase": 1, "llm_name": "fox", "speed_ms": 5})
    )
    (answer,) = served(person, "aoc", [asked], BRIDGEHEAD_READ_ONLY="1")

    assert "error" in answer
    assert not (person.puzzles / "speeds").exists()


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        ({"BRIDGEHEAD_ALLOW_TOOLS": "speed_*,fetch_instruction"}, 3),
        ({"BRIDGEHEAD_DENY_TOOLS": "speed_*"}, 6),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "speed_*", "BRIDGEHEAD_DENY_TOOLS": "*_history"}, 1),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "*", "BRIDGEHEAD_READ_ONLY": "1"}, 4),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "SPEED_*"}, 0),
    ],
)
def test_tools_are_allowed_and_denied_by_name(person: Person, settings: dict[str, str], offered: int) -> None:
    done = person.run("tools", "aoc", "--json", **settings)

    assert done.stdout.count('"inputSchema"') == offered


def test_a_server_with_a_prefix_lists_and_calls_by_it(person: Person) -> None:
    listed, called, unknown = served(
        person,
        "aoc",
        [
            request("tools/list"),
            request(
                "tools/call",
                call("elf_record_speed", {"day": 1, "phase": 1, "llm_name": "fox", "speed_ms": 5}),
            ),
            request("tools/call", call("record_speed", {})),
        ],
        AOC_TOOL_PREFIX="elf_",
    )

    assert {tool["name"] for tool in listed["result"]["tools"]} == {
        f"elf_{name}" for name in names(person, "aoc")
    }
    assert called["result"]["content"][0]["text"].startswith("Recorded fox Day 1 Phase 1")
    assert unknown["error"]["message"] == "Invalid params: Unknown tool: record_speed"


def test_a_prefix_that_cannot_work_ends_the_start_with_a_message(person: Person) -> None:
    bad = person.run("bitburner", BITBURNER_TOOL_PREFIX="my tools")

    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)
    assert "BITBURNER_TOOL_PREFIX is 'my tools': expected up to 32 letters, digits, _ and -" in bad.stderr


def test_the_commands_show_and_take_the_prefixed_names(person: Person) -> None:
    listed = person.run("tools", "aoc", AOC_TOOL_PREFIX="elf_")
    cost = person.run("tools", "aoc", "--cost", "--json", AOC_TOOL_PREFIX="elf_")
    called = person.run("call", "aoc", "elf_speed_leaderboard", AOC_TOOL_PREFIX="elf_")

    assert "elf_fetch_instruction" in listed.stdout
    assert '"elf_fetch_instruction"' in cost.stdout
    assert called.returncode == 0, called.stderr


CORE = {
    "aoc": {"fetch_instruction", "record_speed"},
    "bitburner": {
        *("list_files", "read_file", "write_file", "delete_file", "get_all_files", "calculate_ram"),
        *("get_netscript_definitions", "search_definitions", "connection_status"),
    },
    "mercury": {
        *("mercury_chat_completion", "mercury_chat_stream", "mercury_fim_completion", "mercury_list_models"),
    },
}


@pytest.mark.parametrize("bridge", CORE)
def test_the_tools_of_the_contract_are_in_every_toolset(person: Person, bridge: str) -> None:
    variable = f"{bridge.upper()}_TOOLSETS"

    assert names(person, bridge, **{variable: "core"}) == CORE[bridge]
    assert names(person, bridge, **{variable: "all"}) == names(person, bridge)


def test_a_toolset_adds_its_tools(person: Person) -> None:
    assert names(person, "aoc", AOC_TOOLSETS="records, Ranking") == CORE["aoc"] | {
        *("speed_history", "withdraw_record", "speed_leaderboard"),
    }


def test_a_tool_of_another_toolset_cannot_be_called(person: Person) -> None:
    (answer,) = served(
        person, "aoc", [request("tools/call", call("speed_history", {}))], AOC_TOOLSETS="attempts"
    )

    assert answer["error"]["message"] == (
        "Invalid params: Unknown tool: speed_history. AOC_TOOLSETS=attempts hides it."
    )


def test_an_unknown_toolset_is_refused_with_those_that_there_are(person: Person) -> None:
    done = person.run("bitburner", BITBURNER_TOOLSETS="search,serch")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "BITBURNER_TOOLSETS is 'search,serch'" in done.stderr
    assert "some of edits, search, servers, saves" in done.stderr


@pytest.mark.parametrize("bridge", plugins.built_in_names())
def test_every_tool_that_a_toolset_names_is_there(bridge: str) -> None:
    manifest = plugins.load(bridge)
    toolsets = import_module(manifest.settings.__module__).TOOLSETS
    offered = make_bridge(manifest, {"MERCURY_API_KEY": "sk_0123456789abcdef"}).tools

    assert [name for group in toolsets.groups.values() for name in group if name not in offered] == []


@pytest.mark.parametrize("bridge", WRITING)
def test_a_wrong_rule_is_refused_before_anything_is_served(person: Person, bridge: str) -> None:
    done = person.run(bridge, BRIDGEHEAD_READ_ONLY="perhaps")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "BRIDGEHEAD_READ_ONLY is 'perhaps'" in done.stderr
