"""Entries: what becomes of servers that are there already, ours and those of others."""

import sys

from .desk import Desk, servers


def test_an_update_keeps_what_others_added_to_our_entry(desk: Desk) -> None:
    desk.install("cursor", "aoc", environment={"AOC_YEAR": "2024"})
    text = desk.cursor.read_text(encoding="utf-8")
    desk.cursor.write_text(text.replace('"args"', '"disabled": true,\n      "args"'), encoding="utf-8")

    said = desk.install("cursor", "aoc", "--command", sys.executable)

    entry = servers(desk.cursor)["aoc"]
    assert "updated" in said.out
    assert (entry["command"], entry["disabled"], entry["env"]) == (sys.executable, True, {"AOC_YEAR": "2024"})


def test_a_file_that_came_with_the_bridges_goes_with_them(desk: Desk) -> None:
    desk.install("cursor")

    said = desk.install("cursor", "--remove")

    assert "Nothing else was in the file, so it was removed." in said.out
    assert not desk.cursor.exists()


def test_a_server_of_all_bridges_may_have_any_name(desk: Desk) -> None:
    arguments = ("cursor", "--url", "https://b.example.com/mcp", "--name", "team")
    desk.install(*arguments)
    said = desk.install(*arguments)
    desk.install("cursor", "--remove", "--name", "team")

    assert "already there" in said.out
    assert not desk.cursor.exists()
