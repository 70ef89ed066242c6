"""Configuration files as people have them: only our entries come, and they go without a trace."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bridgehead.install import jsonc
from bridgehead.install.clients import BY_ID

from .desk import CONFIGURATIONS, Desk, everything
from .stand_ins import KEY

FILES = sorted(path.name for path in CONFIGURATIONS.iterdir())
SETTINGS = {"MERCURY_API_KEY": KEY, "AOC_YEAR": "2024", "BITBURNER_CONNECT_WAIT_MS": "2000"}
STYLES = {
    "as it is": lambda data: data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
}


def client_of(name: str) -> str:
    return name if name == "mcp.json" else name.split(".", maxsplit=1)[0]


def read(data: bytes, name: str) -> dict[str, Any]:
    text = data.decode("utf-8-sig")
    if name.endswith(".toml"):
        return tomllib.loads(text)
    root = jsonc.parse(text).root
    assert root is not None
    return dict(root.data)


@pytest.fixture(params=STYLES)
def style(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, style: str, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    path.write_bytes(STYLES[style]((CONFIGURATIONS / path.name).read_bytes()))
    return path


def test_an_installation_adds_our_entries_and_changes_nothing_else(desk: Desk, file: Path) -> None:
    client = BY_ID[client_of(file.name)]
    before = read(file.read_bytes(), file.name)

    said = desk.install(client.id, "--path", str(file), environment=SETTINGS)

    after = read(file.read_bytes(), file.name)
    ours = {name: after[client.section].pop(name) for name in ("bitburner", "aoc", "mercury")}
    assert (said.status, said.err) == (0, "")
    assert {name: entry["command"] for name, entry in ours.items()} == dict.fromkeys(ours, str(desk.program))
    assert {name: entry["args"] for name, entry in ours.items()} == {name: [name] for name in ours}
    assert ours["aoc"]["env"] == {"AOC_YEAR": "2024"}
    assert after.pop(client.section) == before.pop(client.section, {})
    assert json.dumps(after) == json.dumps(before)


def test_an_installation_only_inserts_and_takes_no_byte_away(desk: Desk, file: Path) -> None:
    before = file.read_bytes()

    desk.install(client_of(file.name), "--path", str(file))

    after = iter(file.read_bytes())
    assert all(byte in after for byte in before)


def test_installing_twice_is_installing_once(desk: Desk, file: Path) -> None:
    arguments = (client_of(file.name), "--path", str(file))
    desk.install(*arguments, environment=SETTINGS)
    once = file.read_bytes()
    files = sorted(file.parent.iterdir())

    said = desk.install(*arguments, environment=SETTINGS)

    assert file.read_bytes() == once
    assert sorted(file.parent.iterdir()) == files
    assert "Nothing had to be changed." in said.out


def test_removing_gives_back_the_same_bytes(desk: Desk, file: Path) -> None:
    before = file.read_bytes()
    desk.install(client_of(file.name), "--path", str(file), environment=SETTINGS)
    assert file.read_bytes() != before

    said = desk.install(client_of(file.name), "--path", str(file), "--remove")

    assert (said.status, said.err) == (0, "")
    assert file.read_bytes() == before


def test_bridges_may_go_in_another_order_than_they_came(desk: Desk, file: Path) -> None:
    before = file.read_bytes()
    for bridge in ("mercury", "bitburner", "aoc"):
        desk.install(client_of(file.name), bridge, "--path", str(file))

    for bridge in ("bitburner", "mercury", "aoc"):
        desk.install(client_of(file.name), bridge, "--path", str(file), "--remove")

    assert file.read_bytes() == before


def test_a_dry_run_writes_nothing_and_shows_what_would_come(desk: Desk, file: Path) -> None:
    before = file.read_bytes()

    said = desk.install(client_of(file.name), "--path", str(file), "--dry-run", environment=SETTINGS)

    assert file.read_bytes() == before
    assert list(file.parent.glob("*.bak")) == []
    assert said.out.startswith(f"--- {file}\n+++ {file} (after)\n@@")
    assert any(line.startswith("+") and "mercury" in line for line in said.out.splitlines())


# --- broken files ------------------------------------------------------------------------------------------


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
