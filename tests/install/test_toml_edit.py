"""TOML: tables in all the ways that people and programs write them."""

import pytest

from bridgehead.install import edit
from bridgehead.install.errors import InstallError

ENTRY = {"command": "/opt/bridgehead", "args": ["aoc"]}
SPREAD = """\
[mcp_servers.aoc]
command = "/old/bridgehead"

# for the year
[mcp_servers.aoc.env]
AOC_YEAR = "2024"

[tui] # in between
theme = "dark"

[mcp_servers.aoc.tools.record_speed]
approval_mode = "approve"
"""


def test_a_table_in_pieces_becomes_one_where_its_first_piece_was() -> None:
    entry = {
        **ENTRY,
        "env": {"AOC_YEAR": "2023", "odd name": 'a"\\\n\x7f'},
        "startup_timeout_sec": 2.5,
        "enabled": True,
    }

    after = edit.put(SPREAD, "toml", "mcp_servers", {"aoc": entry})

    assert after == (
        '[mcp_servers.aoc]\ncommand = "/opt/bridgehead"\nargs = ["aoc"]\n'
        'env = { AOC_YEAR = "2023", "odd name" = "a\\"\\\\\\u000a\\u007f" }\n'
        "startup_timeout_sec = 2.5\nenabled = true\n"
        '\n# for the year\n\n[tui] # in between\ntheme = "dark"\n'
    )


def test_a_table_in_pieces_goes_with_all_of_them() -> None:
    after = edit.take(SPREAD, "toml", "mcp_servers", ["aoc"])

    assert after == '# for the year\n\n[tui] # in between\ntheme = "dark"\n'


def test_neighbours_go_together() -> None:
    text = "a = 1\n\n[mcp_servers.aoc]\ncommand = 'x'\n\n[mcp_servers.aoc.env]\nA = 'b'\n\n[z]\n"

    assert edit.take(text, "toml", "mcp_servers", ["aoc"]) == "a = 1\n\n[z]\n"


def test_what_is_not_there_is_not_taken() -> None:
    assert edit.take(SPREAD, "toml", "mcp_servers", ["mercury"]) == SPREAD


def test_a_table_in_braces_is_refused_because_nothing_can_be_added_to_it() -> None:
    with pytest.raises(InstallError, match="leaves no room for a safe change"):
        edit.put("mcp_servers = { docs = { command = 'x' } }\n", "toml", "mcp_servers", {"aoc": ENTRY})


def test_a_changed_entry_at_an_end_without_a_line_break_ends_without_one() -> None:
    text = "[mcp_servers.aoc]\ncommand = 'x'"

    assert (
        edit.put(text, "toml", "mcp_servers", {"aoc": {"command": "y"}}) == '[mcp_servers.aoc]\ncommand = "y"'
    )
