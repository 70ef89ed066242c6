"""Edit: our servers are put in and taken out, everything else stays, and each change is proved."""

import pytest

from bridgehead.install import edit
from bridgehead.install.errors import InstallError, Malformed

ENTRY = {"command": "bridgehead", "args": ["aoc"]}
SECTIONS = {"json": "mcpServers", "toml": "mcp_servers"}


@pytest.mark.parametrize("form", ["json", "toml"])
def test_a_server_goes_in_and_comes_out_again(form: edit.Format) -> None:
    section = SECTIONS[form]
    text = edit.put(None, form, section, {"aoc": ENTRY, "mercury": ENTRY})

    assert edit.servers(text, form, section) == {"aoc": ENTRY, "mercury": ENTRY}
    assert edit.servers(edit.take(text, form, section, ["aoc"]), form, section) == {"mercury": ENTRY}
    assert edit.servers(edit.take(text, form, section, ["aoc", "mercury"]), form, section) == {}


@pytest.mark.parametrize("form", ["json", "toml"])
def test_nothing_is_a_file_without_servers(form: edit.Format) -> None:
    assert edit.servers(None, form, SECTIONS[form]) == {}
    assert edit.take(None, form, SECTIONS[form], ["aoc"]) is None


def test_what_is_not_ours_stays_to_the_letter() -> None:
    before = '\ufeff{ // mine\n  "theme":"dark",\n  "mcpServers": { "other": {"url": "x"} }\n}\n'
    after = edit.put(before, "json", "mcpServers", {"aoc": ENTRY})

    assert after is not None
    assert after.startswith('\ufeff{ // mine\n  "theme":"dark",\n  "mcpServers": {')
    assert edit.servers(after, "json", "mcpServers") == {"other": {"url": "x"}, "aoc": ENTRY}
    assert edit.take(after, "json", "mcpServers", ["aoc"]) == before


def test_a_text_that_is_broken_is_not_changed() -> None:
    with pytest.raises(Malformed):
        edit.put('{"mcpServers": ', "json", "mcpServers", {"aoc": ENTRY})


def test_a_table_in_braces_leaves_no_room() -> None:
    with pytest.raises(InstallError, match="leaves no room for a safe change"):
        edit.put("mcp_servers = { other = { url = 'x' } }\n", "toml", "mcp_servers", {"aoc": ENTRY})
