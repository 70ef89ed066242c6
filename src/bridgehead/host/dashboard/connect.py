"""Connect: lists the commands that connect a client to the endpoints of this server. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from msgspec import Struct

from . import layout
from .templates import link

CLIENTS = {
    "claude-code": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "windsurf": "Windsurf",
    "zed": "Zed",
    "gemini": "Gemini CLI",
    "codex": "Codex CLI",
    "mcp.json": "mcp.json",
}
"""Clients of `bridgehead install` that take an address. A copy: the host does not import the installer."""
FIRST = "claude-code"


class ServerAddress(Struct, frozen=True):
    """One address at which clients reach bridges."""

    title: str
    url: str
    name: str = ""
    """The `--name` for `bridgehead install`, if it cannot derive one from the address."""


def make_command(endpoint: ServerAddress, client: str, *, needs_token: bool) -> str:
    """Return the command that connects a client to an endpoint."""
    words = ["bridgehead", "install", client, "--url", endpoint.url]
    words += ["--name", endpoint.name] if endpoint.name else []
    words += [] if needs_token else ["--no-token"]
    return shlex.join(words)


def list_commands(endpoints: Iterable[ServerAddress], client: str, *, needs_token: bool) -> dict[str, object]:
    """Return what the page shows: the command for each endpoint, for one client, and the other clients."""
    return {
        "clients": [
            (title, link(layout.CLIENTS, client=None if name == FIRST else name), name == client)
            for name, title in CLIENTS.items()
        ],
        "commands": [
            (endpoint, make_command(endpoint, client, needs_token=needs_token).split(" "))
            for endpoint in endpoints
        ],
        "needs_token": needs_token,
    }
