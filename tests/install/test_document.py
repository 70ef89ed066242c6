"""docs/install.md: every command in it is typed, and every client is in it."""

import shlex
from pathlib import Path

import pytest

from bridgehead.install.clients import CLIENTS, Client

from .desk import Desk

DOCUMENT = (Path(__file__).parents[2] / "docs" / "install.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in DOCUMENT.split("```sh\n")[1:]
    for line in block.split("```")[0].splitlines()
    if "bridgehead install" in line
]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_document_works(desk: Desk, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(desk.project)
    (desk.project / "server.py").write_text(
        'from bridgehead.mcp import Bridge\nmine = Bridge("mine", "1")\n', encoding="utf-8"
    )
    settings, arguments = line.split("bridgehead install", maxsplit=1)
    environment = dict(word.split("=", maxsplit=1) for word in settings.split())

    (desk.home / ".cursor").mkdir()  # a client that `install all` finds

    said = desk.install(*shlex.split(arguments), environment=environment)

    assert (said.status, said.err) == (0, "")
    assert said.out


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_every_client_is_described_and_has_a_line_to_type(client: Client) -> None:
    cells = len(DOCUMENT.split("| client |")[1].splitlines()[0].split("|"))
    rows = [line for line in DOCUMENT.splitlines() if line.startswith(f"| `{client.id}` |")]
    row = next(line for line in rows if len(line.split("|")) == cells + 2)

    assert client.section in row.replace("[mcp_servers.NAME]", "mcp_servers")
    assert (client.project or "–").removeprefix("project/") in row
    assert any(line.startswith(f"bridgehead install {client.id}") for line in COMMANDS)
