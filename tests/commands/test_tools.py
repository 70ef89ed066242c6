"""Tools: every tool of every bridge, for a person or as a client gets it."""

import json
from pathlib import Path

import pytest

from bridgehead.runtime import plugins
from tests.support.person import Person

NAMES = plugins.built_in_names()
TESTS = Path(__file__).parents[1]


def test_every_bridge_is_listed_with_what_its_tools_take(person: Person) -> None:
    done = person.run("tools")

    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if line in NAMES] == list(NAMES)
    assert "day=integer phase=integer llm_name=text speed_ms=integer" in done.stdout
    assert "[cache=bypass|refresh|use]" in done.stdout


@pytest.mark.parametrize("bridge", NAMES)
def test_as_json_they_are_what_a_client_gets(person: Person, bridge: str) -> None:
    done = person.run("tools", bridge, "--json")

    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads(done.stdout)
    snapshot = json.loads((TESTS / bridge / "tools.json").read_text(encoding="utf-8"))
    assert list(listed) == [bridge]
    assert [tool["name"] for tool in listed[bridge]] == [tool["name"] for tool in snapshot]


def test_only_what_is_offered_is_listed(person: Person) -> None:
    done = person.run("tools", "aoc", "--json", BRIDGEHEAD_DENY_TOOLS="speed_*,*_attempt,withdraw_*")

    offered = {tool["name"] for tool in json.loads(done.stdout)["aoc"]}
    assert {"fetch_instruction", "record_speed"} <= offered
    assert not [name for name in offered if name.startswith("speed_")]


def test_the_cost_of_a_list_is_told_by_tool_in_bytes_and_tokens(person: Person) -> None:
    listed = json.loads(person.run("tools", "aoc", "--json").stdout)["aoc"]
    costs = json.loads(person.run("tools", "aoc", "--cost", "--json").stdout)["aoc"]
    shown = person.run("tools", "aoc", "--cost").stdout.split()

    # What a model is shown of a tool.
    parts = [{part: tool[part] for part in ("name", "description", "inputSchema")} for tool in listed]
    assert costs == {
        part["name"]: len(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode())
        for part in parts
    }
    size = costs["record_speed"]
    assert shown[shown.index("record_speed") - 2 :][:2] == [f"{size:,}", f"~{round(size / 4.3)}"]
    assert f"{sum(costs.values()):,}" in shown
    assert "Tokens are o200k, estimated at 4.3 bytes each." in " ".join(shown)


def test_a_narrow_terminal_shows_every_value_of_an_argument(person: Person) -> None:
    shown = person.run("tools", "mercury", COLUMNS="60").stdout

    assert "…" not in shown
    assert "[reasoning_effort=high|instant|low|medium]" in "".join(shown.split())


def test_a_bridge_that_is_not_there_is_one_line(person: Person) -> None:
    done = person.run("tools", "moon")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "Available: " in done.stderr
