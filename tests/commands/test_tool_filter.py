"""Offering: each bridge, as the real process, shows only those tools that it may."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages import call, request
from tests.support.person import COMMAND, Person
from tests.support.stdio_peer import Peer

WRITING = {
    "aoc": {"record_speed", "withdraw_record", "start_attempt", "finish_attempt"},
    "bitburner": {"write_file", "delete_file", "edit_file", "move_file", "restore_file", "backup_save"},
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
        ({"BRIDGEHEAD_DENY_TOOLS": "speed_*"}, 5),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "speed_*", "BRIDGEHEAD_DENY_TOOLS": "*_history"}, 1),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "*", "BRIDGEHEAD_READ_ONLY": "1"}, 3),
        ({"BRIDGEHEAD_ALLOW_TOOLS": "SPEED_*"}, 0),
    ],
)
def test_tools_are_allowed_and_denied_by_name(person: Person, settings: dict[str, str], offered: int) -> None:
    done = person.run("tools", "aoc", "--json", **settings)

    assert done.stdout.count('"inputSchema"') == offered


@pytest.mark.parametrize("bridge", WRITING)
def test_a_wrong_rule_is_refused_before_anything_is_served(person: Person, bridge: str) -> None:
    done = person.run(bridge, BRIDGEHEAD_READ_ONLY="perhaps")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "BRIDGEHEAD_READ_ONLY is 'perhaps'" in done.stderr
