"""The buttons of docs/install.md carry an entry that the client can use as it is."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from bridgehead.runtime import plugins
from release import install_links

ROOT = Path(__file__).parents[2]
BRIDGES = plugins.built_in_names()


def cursor_entry(link: str) -> tuple[str, dict[str, Any]]:
    query = parse_qs(urlsplit(link).query, strict_parsing=True)
    return query["name"][0], json.loads(base64.b64decode(query["config"][0], validate=True))


def vscode_entry(link: str) -> dict[str, Any]:
    [target] = parse_qs(urlsplit(link).query, strict_parsing=True)["url"]
    scheme, _, text = target.partition("?")
    assert scheme == "vscode:mcp/install"
    entry: dict[str, Any] = json.loads(unquote(text))
    return entry


@pytest.mark.parametrize("bridge", BRIDGES)
def test_cursor_is_given_the_name_and_the_entry(bridge: str) -> None:
    name, entry = cursor_entry(install_links.cursor_link(plugins.load(bridge)))

    assert name == bridge
    assert (entry["type"], entry["command"], entry["args"]) == ("stdio", "uvx", ["bridgehead", bridge])


@pytest.mark.parametrize("bridge", BRIDGES)
def test_vscode_is_given_the_entry_with_its_name(bridge: str) -> None:
    entry = vscode_entry(install_links.vscode_link(plugins.load(bridge)))

    assert entry["name"] == bridge
    assert (entry["type"], entry["command"], entry["args"]) == ("stdio", "uvx", ["bridgehead", bridge])


def test_cursor_reads_the_key_from_the_environment() -> None:
    _, entry = cursor_entry(install_links.cursor_link(plugins.load("mercury")))

    assert entry["env"] == {"MERCURY_API_KEY": "${env:MERCURY_API_KEY}"}


def test_vscode_asks_for_the_key_and_hides_it() -> None:
    entry = vscode_entry(install_links.vscode_link(plugins.load("mercury")))

    assert entry["env"] == {"MERCURY_API_KEY": "${input:MERCURY_API_KEY}"}
    [asked] = entry["inputs"]
    assert (asked["type"], asked["id"], asked["password"]) == ("promptString", "MERCURY_API_KEY", True)


def test_the_page_has_every_button_and_its_picture() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    made = install_links.buttons(plugins.load(name) for name in BRIDGES)

    assert made in page
    for bridge in BRIDGES:
        for client in install_links.OFFERED:
            assert (ROOT / "docs" / "images" / install_links.button_name(bridge, client)).exists()


def test_an_old_button_is_noticed_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "install.md"
    current = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    page.write_text(current.replace("name=aoc", "name=old"), encoding="utf-8")
    monkeypatch.setattr(install_links, "PAGE", page)

    assert install_links.main(["--check"]) == 1
    assert install_links.main([]) == 0
    assert install_links.main(["--check"]) == 0
    assert page.read_text(encoding="utf-8") == current
