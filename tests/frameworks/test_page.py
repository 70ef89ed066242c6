"""docs/clients.md: every client that is tried has its snippet there, and every snippet is tried."""

import re

import pytest

from tests.frameworks.environments import Client, read_clients
from tests.frameworks.page import ADDRESS, PAGE, TRANSPORTS, find_programs, replace_statements

CLIENTS = read_clients()


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_client_has_a_program_for_each_of_its_transports_and_one_version(client: Client) -> None:
    programs = find_programs(client.section)

    assert set(client.lacks) < set(programs) <= set(TRANSPORTS)
    assert {"stdio", "http"} & set(programs)
    for transport, program in programs.items():
        assert ('"bridgehead"' if transport == "stdio" else ADDRESS) in program
        assert "fetch_instruction" in program
        assert (f"{ADDRESS}/sse" in program) == (transport == "sse")
    assert re.fullmatch(r"[\d.]+", client.version)


def test_a_block_takes_the_place_of_the_statement_with_its_name() -> None:
    program = "import os\n\nSERVER = {\n    1: 2,\n}\nother = SERVER\n"

    assert replace_statements(program, "SERVER = 3\n") == "import os\n\nSERVER = 3\nother = SERVER\n"
    with pytest.raises(SystemExit, match="'missing' does not stand once"):
        replace_statements(program, "missing = 3\n")


def test_every_snippet_on_the_page_is_tried() -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    headings = {section.partition("\n")[0] for section in sections if "```" in section}

    assert headings == {client.section for client in CLIENTS}
