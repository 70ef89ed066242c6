"""Broken files: refused with the place where they are, and left as they were."""

import pytest

from .desk import Desk, everything


@pytest.mark.parametrize(
    ("client", "text", "place"),
    [
        ("cursor", '{\n  "mcpServers": {\n    "a": 1 "b"\n}}', '3:12: a "," or "}" is missing here'),
        ("cursor", '{\r\n  "x": tru\r\n}', "2:8: a value is missing here"),
        ("cursor", "[]", '1:1: an object, "{ … }", was expected here'),
        ("cursor", '{"mcpServers": null}', '1:16: an object, "{ … }", was expected here'),
        ("codex", 'a = 1\n[b\nc = "', "2:3: "),
        ("codex", 'a = """', "1:8: "),
        ("codex", "mcp_servers = 3", "1:1: mcp_servers was expected to be a table"),
        (
            "codex",
            "mcp_servers.aoc.command = 'x'\nmcp_servers.aoc.args = ['aoc']",
            "1:1: mcp_servers.aoc is not",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_place(desk: Desk, client: str, text: str, place: str) -> None:
    path = desk.project / "config"
    path.write_text(text, encoding="utf-8", newline="")

    said = desk.install(client, "aoc", "--path", str(path))

    assert (said.status, said.out) == (1, "")
    assert said.err.startswith(f"bridgehead install: {path}:{place}")
    assert said.err.endswith("Nothing was written.\n")
    assert everything(desk.project) == {"config": text.encode()}


def test_servers_in_braces_are_refused_in_words_for_the_file_as_it_is(desk: Desk) -> None:
    path = desk.project / "config"
    path.write_text("mcp_servers = { other = { command = 'x' } }\n", encoding="utf-8")

    for bridges in (["aoc"], ["aoc", "mercury"]):
        said = desk.install("codex", *bridges, "--path", str(path))

        assert (said.status, said.out) == (1, "")
        assert "The way in which mcp_servers is written leaves no room for a safe change." in said.err


def test_a_file_that_is_not_utf_8_is_refused_with_its_place(desk: Desk) -> None:
    path = desk.project / "config"
    path.write_bytes(b'{\n  "a": "\xe9"}')

    said = desk.install("cursor", "--path", str(path))

    assert said.err == f"bridgehead install: {path}:2:9: this is not UTF-8. Nothing was written.\n"
    assert path.read_bytes() == b'{\n  "a": "\xe9"}'
