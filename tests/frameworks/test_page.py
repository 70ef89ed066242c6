"""docs/clients.md: every client that is tried has its snippet there, and every snippet is tried."""

import re

import pytest

from tests.frameworks.environments import Client, read_clients
from tests.frameworks.page import PAGE, find_snippet

CLIENTS = read_clients()


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_client_has_a_snippet_and_one_version(client: Client) -> None:
    assert "bridgehead" in find_snippet(client.section).lower()
    assert re.fullmatch(r"[\d.]+", client.version)


def test_every_snippet_on_the_page_is_tried() -> None:
    headings = set(re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))

    assert headings == {client.section for client in CLIENTS}


def test_the_clients_that_every_change_has_to_work_with_are_these() -> None:
    assert {client.package for client in CLIENTS if client.ci} == {
        "@ai-sdk/mcp",
        "crewai-tools",
        "langchain-mcp-adapters",
        "mcp",
        "mcp-remote",
        "mcp-use",
        "openai-agents",
        "pydantic-ai-slim",
    }
